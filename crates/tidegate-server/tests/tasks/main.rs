#![allow(clippy::unwrap_used)] // A test that cannot go on should say where.

//! A task manager with a store in a folder and a mock executor of this process.

#[path = "../../../tidegate/tests/support/folder.rs"]
mod folder;

mod endings;
mod failing_store;
mod node;
mod queueing;
mod restarts;
mod sessions;
mod submissions;
