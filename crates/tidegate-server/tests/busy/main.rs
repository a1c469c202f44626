#![allow(clippy::unwrap_used)] // A test that cannot go on should say where.

//! Busy-aware routing and queues through the real gateway, on real sockets, in front of scripted upstreams and
//! mocks.

mod answers;
mod inference;
mod isolation;
mod queue;
mod reports;
mod returning;
mod selection;
#[path = "../gateway/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each of the two binaries uses a part of it")]
mod support;
mod thresholds;
mod traffic;
mod upstream;
mod waiting;
