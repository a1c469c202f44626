//! The simulated executors, the messages to them, and the network between.
//!
//! May use the slots of `tidegate-core`. Must not know who sends tasks: managers, or the loop of the seed.

mod executor;
mod message;
mod network;

pub use executor::Fleet;
pub use message::{Caller, Key, Operation, Reply, Request};
pub use network::{Network, POLL_MAX};
