//! The upstreams of one pool that have room, readable without a lock.
//!
//! May use the load of an upstream and the thresholds. Must not know how an upstream is chosen.

mod board;
mod entry;
mod free_set;
mod loads;
mod upstream_state;

pub use board::Availability;
pub use entry::AvailabilityEntry;
pub use free_set::FreeSet;
pub use loads::Loads;
pub use upstream_state::UpstreamState;
