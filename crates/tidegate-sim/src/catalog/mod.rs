//! The scenarios that ship, built into the program.
//!
//! May use the scenario. Must not know how one is run.

mod executors;
mod find;
mod gateway;
mod pipeline;

pub use find::{find, shipped};
