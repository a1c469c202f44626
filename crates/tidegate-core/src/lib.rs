//! The decisions of Tidegate.
//!
//! Nothing here reads a clock, opens a socket, rolls a die or waits: time and chance are arguments, effects
//! are the caller's. That is what lets the server, the tests and the simulator run the same code.
//!
//! - [`admission`]: who may execute now, by priority, within exact limits.
//! - [`retry`]: whether, when and how often in all to try again what failed.
//! - [`routing`]: which worker takes a request, and when all of them are too busy.

pub mod admission;
pub mod retry;
pub mod routing;
mod sync;
