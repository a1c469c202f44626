//! Busy-aware routing: a worker for each request, or an honest refusal when all are busy.

pub use tidegate_core::routing::{KvUsage, LoadReport};
