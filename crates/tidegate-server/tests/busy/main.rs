#![allow(clippy::unwrap_used)] // A test that cannot go on should say where.

//! Busy-aware routing and outboxes through the real gateway, on real sockets, in front of scripted upstreams and
//! mocks.

mod answers;
mod dry_run;
mod from_the_head;
mod isolation;
mod load_sources;
mod models;
mod outbox;
mod overshoot;
mod peeking;
mod priorities;
mod reported_elsewhere;
mod reports;
mod series;
#[path = "../gateway/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each of the two binaries uses a part of it")]
mod support;
mod threshold_api;
mod threshold_errors;
mod traffic;
mod upstream;
mod vanishing;
