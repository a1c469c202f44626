#![allow(clippy::unwrap_used)] // A test that cannot go on should say where.

//! A task manager with a store in a folder, or in PostgreSQL, and a mock executor of this process.

#[path = "../../../tidegate/tests/support/mod.rs"]
mod support;

mod claims;
mod endings;
mod failing_store;
mod node;
mod queueing;
mod restarts;
mod sessions;
mod submissions;

use support::folder;
