#![allow(clippy::unwrap_used)] // A test that cannot go on should say where.

//! How load is read: from pages as each kind of server writes them, from garbage, and over real sockets.

mod combining;
mod fetching;
mod fixtures;
mod garbage;
#[path = "../../../tidegate/tests/support/reserved.rs"]
#[allow(dead_code, reason = "not every binary needs all of it")]
mod reserved;
mod support;
