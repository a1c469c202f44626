#![allow(clippy::unwrap_used)] // A test that cannot go on should say where.

//! An executor on real sockets: admission, refusals, executions and shutdown.

mod admission;
mod drain;
mod ended_executions;
mod executions;
mod http_runner;
mod invalid_requests;
mod leases;
mod metrics;
mod progress;
mod reservations;
#[path = "../../../tidegate/tests/support/reserved.rs"]
#[allow(dead_code, reason = "not every binary needs all of it")]
mod reserved;
mod returning;
mod support;
