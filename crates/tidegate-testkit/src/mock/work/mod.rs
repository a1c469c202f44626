//! Plain work for drills: a request names its duration and KV blocks. Slots and queue are apart from the engine's.
//! May use: faults.
//! Must not know: HTTP, the engine.

mod runner;
mod slots;

pub(super) use runner::WorkRunner;
pub use slots::{WorkId, WorkLoad, WorkRefused, WorkRequest, WorkSettings, WorkSlots};
