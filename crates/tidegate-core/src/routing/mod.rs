//! Busy-aware routing: which worker takes a request, and when to refuse because all of them are busy.

mod report;

pub use report::{KvUsage, LoadReport};
