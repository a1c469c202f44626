//! The parts of a simulated gateway and its upstreams: admission, router, queue, and counts to check them by.
//!
//! May use the decisions of `tidegate-core` and the scenario. Must not know in which order things happen.

mod admission_summary;
mod advice;
mod ask;
mod check;
mod fleet;
mod record;
mod request;
mod settings;
mod trackers;
mod upstream;
mod waiting;

pub use admission_summary::{AdmissionSummary, PriorityAdmission};
pub use advice::Advice;
pub use ask::Ask;
pub use check::{Broken, Checks};
pub use fleet::{Fleet, NoRoom, Reservation};
pub use request::{HeldPermit, Slab, State};
pub use settings::Settings;
pub use trackers::Trackers;
pub use upstream::{Taken, Trouble, Upstream};
pub use waiting::{Left, Waiting};
