//! The gateway under real load, on real sockets. One test at a time: they would disturb each other.

#![allow(clippy::unwrap_used)] // A test that cannot go on should say where.

mod flood;
mod saturation;
mod support;
