//! Queue of one destination: bounded, first in first out, with a drop policy per message class.
//!
//! [`RobustQueue`] is one queue split at the primary's size: the messages behind it are the overflow, always newer
//! than the primary, and move up as the primary drains. [`QueueState`] is its fill, reported to the producer with
//! every message. The policy at the bound depends on the class of the message:
//!
//! | class | at the bound |
//! |---|---|
//! | control | has a small lane of its own, served first; if that is full: refused |
//! | dispatch | refused at once: another destination can take it. Never dropped once accepted |
//! | data | replaces the oldest telemetry, then the oldest data; refused if the queue holds only dispatch |
//! | telemetry | replaces the oldest telemetry; refused if there is none |
//!
//! A refusal returns the message. Uses `admission` for classes and `signal` for levels. Must not know transports,
//! senders or clocks.
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
mod class_rings;
mod config;
mod gauge;
mod put;
mod queue;
mod state;
mod stats;

pub use alert::DestinationSlow;
pub use config::{QueueConfig, QueueConfigError, QueueDelays};
pub(crate) use gauge::Gauge;
pub use put::{Put, Refused, RefusedReason};
pub use queue::RobustQueue;
pub use state::QueueState;
pub use stats::{DestinationQueueStats, QueueStats, SenderStats};
