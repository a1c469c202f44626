//! Admission by priority: immediate execution within exact limits, or an immediate refusal.
//!
//! ```
//! use tidegate_core::admission::{InFlightTracker, MessagePriority, PriorityLimits, Sharing};
//!
//! let limits = PriorityLimits { low: 1, ..PriorityLimits::default() };
//! let tracker = InFlightTracker::new(limits, Sharing::Strict);
//!
//! let first = tracker.try_acquire(MessagePriority::Low).expect("one place is free");
//! assert!(tracker.try_acquire(MessagePriority::Low).is_none(), "and only one");
//! assert!(tracker.try_acquire(MessagePriority::Critical).is_some(), "Critical is never refused");
//!
//! first.success();
//! assert!(tracker.try_acquire(MessagePriority::Low).is_some());
//! ```

mod alert;
mod claim;
mod class;
mod in_flight;
mod lanes;
mod limits;
mod load_state;
mod priority;
mod refusal;
mod retry_after;
mod spread;
mod stats;

pub use alert::{Alert, HIGH_ALERT_RATIO};
pub use claim::Urgency;
pub use class::{MessageClass, MessageKind};
pub use in_flight::{InFlightTracker, Outcome, OwnedPermit, Permit};
pub use lanes::Lanes;
pub use limits::{PriorityLimits, Role, Sharing};
pub use load_state::LoadState;
pub use priority::{MessagePriority, UnknownPriority};
pub use refusal::{Reason, Refusal};
pub use retry_after::{RetryAdvisor, RetryBounds};
pub use spread::Spread;
pub use stats::{OutcomeTotals, PriorityLoadStats, ReasonTotals};
