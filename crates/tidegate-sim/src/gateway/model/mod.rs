//! The parts of a simulated gateway and its upstreams: admission, router, queues, and counts to check them by.
//!
//! May use the decisions of `tidegate-core` and the scenario. Must not know in which order things happen.

mod admission_summary;
mod advice;
mod check;
mod fleet;
mod queue;
mod request;
mod settings;
mod trackers;
mod upstream;

pub use admission_summary::{AdmissionSummary, PriorityAdmission};
pub use advice::{Advice, told};
pub use check::{Broken, Checks};
pub use fleet::{Ask, Fleet};
pub use queue::{Entered, Queue, QueueRefusal};
pub use request::{HeldPermit, Last, Slab, State};
pub use settings::Settings;
pub use trackers::Trackers;
pub use upstream::{Taken, Trouble, Upstream};
