#![allow(clippy::unwrap_used)] // A test that cannot go on should say where.

//! Mock inference server: its engine in virtual time, and the server on real sockets.

mod completions;
mod engine;
mod errors;
mod faults;
mod load;
mod metrics;
mod outages;
mod support;
mod work;
