//! The queue of one destination: bounded, first in first out, and honest about what it can't hold.
//!
//! [`RobustQueue`] is one line of messages, split at the primary's size: what is behind that is the overflow,
//! always newer than the primary, and moves up as the primary drains. [`QueueState`] says how full it is, and a
//! producer is told so with every message. What happens at the bound depends on the class of the message:
//!
//! | class | at the bound |
//! |---|---|
//! | control | has a small lane of its own that nothing else can fill, and is served first; full: handed back |
//! | dispatch | handed back at once: it is better off at another destination. Once accepted it is never dropped |
//! | data | the oldest telemetry makes room, then the oldest data; handed back when all is dispatch |
//! | telemetry | the oldest telemetry makes room; handed back when there is none |
//!
//! ```
//! use tidegate_core::admission::MessageClass;
//! use tidegate_core::outbox::{QueueConfig, QueueState, RobustQueue};
//!
//! let config = QueueConfig { primary_size: 2, overflow_size: 1, ..QueueConfig::default() };
//! let mut queue = RobustQueue::new(config)?;
//! for message in ["first", "second", "third"] {
//!     queue.put(MessageClass::Data, message).expect("there is room");
//! }
//!
//! let put = queue.put(MessageClass::Data, "fourth").expect("the newest is worth most");
//! assert_eq!(put.dropped, Some("first"));
//! assert_eq!(put.state, QueueState::Saturated);
//!
//! let refused = queue.put(MessageClass::Dispatch, "job").expect_err("it is full");
//! assert_eq!(refused.value, "job");
//!
//! assert_eq!(queue.get(), Some("second"));
//! # Ok::<(), tidegate_core::outbox::QueueConfigError>(())
//! ```

mod alert;
mod config;
mod lines;
mod put;
mod queue;
mod state;
mod stats;

pub use alert::DestinationSlow;
pub use config::{QueueConfig, QueueConfigError, QueueDelays};
pub use put::{Put, Refused, RefusedReason};
pub use queue::RobustQueue;
pub use state::QueueState;
pub use stats::{DestinationQueueStats, QueueStats, SenderStats};
