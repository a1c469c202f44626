#![allow(clippy::unwrap_used)] // A test that cannot go on should say where.

//! The mock of an inference server: its engine in virtual time, and the whole of it on real sockets.

mod completions;
mod engine;
mod errors;
mod faults;
mod load;
mod metrics;
mod outages;
#[path = "../gateway/support/promtool.rs"]
mod promtool;
mod support;
mod work;
