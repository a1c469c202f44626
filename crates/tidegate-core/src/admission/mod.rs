//! Admission by priority: immediate execution within exact limits, or an immediate refusal.
//!
//! Uses the crate's atomics and `flow`. Must not know transports, HTTP or where a message comes from.
//!
//! ```
//! use tidegate_core::admission::{InFlightTracker, MessagePriority, PriorityLimits, Sharing};
//!
//! let limits = PriorityLimits { low: 1, ..PriorityLimits::default() };
//! let tracker = InFlightTracker::new(limits, Sharing::Strict);
//!
//! let first = tracker.try_acquire(MessagePriority::Low).expect("one place is free");
//! assert!(tracker.try_acquire(MessagePriority::Low).is_err(), "and only one");
//! assert!(tracker.try_acquire(MessagePriority::Critical).is_ok(), "Critical is never refused");
//!
//! first.success();
//! assert!(tracker.try_acquire(MessagePriority::Low).is_ok());
//! ```

mod alert;
mod class;
mod in_flight;
mod lanes;
mod limits;
mod load_state;
mod priority;
mod refusal;
mod retry_after;
mod retry_board;
mod return_schedule;
mod spread;
mod stats;
mod urgency;

pub use alert::{Alert, HIGH_ALERT_RATIO};
pub use class::{MessageClass, MessageKind};
pub use in_flight::{InFlightTracker, Outcome, OwnedPermit, Permit};
pub use lanes::Lanes;
pub use limits::{PriorityLimits, Role, Sharing};
pub use load_state::LoadState;
pub use priority::{MessagePriority, UnknownPriority};
pub use refusal::{Reason, Refusal};
pub use retry_after::{RetryAdvisor, RetryBounds};
pub use retry_board::RetryBoard;
pub use return_schedule::{ReturnPace, ReturnSchedule};
pub use spread::Spread;
pub use stats::{OutcomeTotals, PriorityLoadStats, ReasonTotals};
pub use urgency::Urgency;
