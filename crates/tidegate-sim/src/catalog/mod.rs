//! The scenarios that ship.

mod executors;
mod find;
mod gateway;
mod pipeline;

pub use find::{find, shipped};
