//! Tidegate as a library: the decisions of `tidegate-core`, and what runs them inside other programs.

pub use tidegate_core::admission;
pub use tidegate_core::admission::{
    InFlightTracker, LoadState, MessageClass, MessagePriority, Outcome, OwnedPermit, Permit,
    PriorityLimits, PriorityLoadStats, Reason, Refusal, Role, Sharing,
};
