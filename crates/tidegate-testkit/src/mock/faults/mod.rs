//! Injected faults: what can fail, changes of it, and their order in time.
//! May use: nothing of the mock.
//! Must not know: engine, work, HTTP.

mod change;
mod plan;

pub(super) use change::{FaultChange, Outage};
pub use change::{Faults, Reports};
pub(super) use plan::FaultPlan;
