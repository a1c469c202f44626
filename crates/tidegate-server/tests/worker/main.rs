#![allow(clippy::unwrap_used)] // A test that cannot go on should say where.

//! An executor on real sockets: what it takes, what it refuses, and what it remembers.

mod admission;
mod drain;
mod executions;
mod leases;
mod passing_on;
mod past;
#[path = "../gateway/support/promtool.rs"]
mod promtool;
mod refusals;
mod reservations;
#[path = "../../../tidegate/tests/support/reserved.rs"]
#[allow(dead_code, reason = "not every binary needs all of it")]
mod reserved;
mod series;
mod support;
