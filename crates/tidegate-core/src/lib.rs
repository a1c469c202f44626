//! The decisions of Tidegate.
//!
//! Nothing here reads a clock, opens a socket, rolls a die or waits: time and chance are arguments, effects
//! are the caller's. That is what lets the server, the tests and the simulator run the same code.
//!
//! - [`admission`]: who may execute now, by priority, within exact limits.
//! - [`capacity`]: the slots of executors, who holds them, who waits for them, and who is placed where.
//! - [`frame`]: batches of records, and the answers to them, as bytes of a connection.
//! - [`line_protocol`]: lines that say what was used, as records.
//! - [`outbox`]: the queue of one destination, and what happens when it is full.
//! - [`retry`]: whether, when and how often in all to try again what failed.
//! - [`routing`]: which worker takes a request, and when all of them are too busy.
//! - [`sequence`]: which numbered batches of a sender have been seen, so that a repeat counts once.
//! - [`signal`]: what a receiver tells a sender of how much it may send.
//! - [`task`]: what a task is, and what may become of it.
//! - [`tariff`]: what usage costs, by tenant, meter, hour, tier and date, in exact decimal numbers.
//! - [`usage`]: what was used, by whom, and what it costs.
//! - [`window`]: how much each stage of the ingestion pipeline may hold.

pub mod admission;
pub mod capacity;
mod flow;
pub mod frame;
pub mod line_protocol;
pub mod outbox;
pub mod retry;
pub mod routing;
pub mod sequence;
pub mod signal;
mod sync;
pub mod tariff;
pub mod task;
pub mod usage;
pub mod window;
