//! The decisions of Tidegate.
//!
//! Nothing here reads a clock, opens a socket, rolls a die or waits: time and chance are arguments, effects
//! are the caller's. That is what lets the server, the tests and the simulator run the same code.
//!
//! - [`admission`]: who may execute now, by priority, within exact limits.
//! - [`outbox`]: the queue of one destination, and what happens when it is full.
//! - [`retry`]: whether, when and how often in all to try again what failed.
//! - [`routing`]: which worker takes a request, and when all of them are too busy.
//! - [`signal`]: what a receiver tells a sender of how much it may send.

pub mod admission;
mod flow;
pub mod outbox;
pub mod retry;
pub mod routing;
pub mod signal;
mod sync;
