#![allow(clippy::unwrap_used)] // A test that cannot go on should say where.

//! A manager of tasks over parts of this process: a store in a folder, and an executor that only pretends.

#[path = "../../../tidegate/tests/support/folder.rs"]
mod folder;

mod ends;
mod lives;
mod node;
mod shaky;
mod submissions;
mod waiting;
