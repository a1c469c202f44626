//! Managers that dispatch tasks to executors, with the dispatcher that ships, and everything that can fail.
//!
//! May use the fleet, the load and the measure. Must not know which scenario or comparison runs it.

mod driver;
mod invariants;
mod ledger;
mod manager;
mod restarts;
mod simulation;

pub use simulation::Managers;
