//! Outgoing messages: one bounded queue and one sender for each destination, so that a slow one delays no other.
//!
//! May use the decisions of `tidegate-core` and tokio. Must not know a protocol: that is the [`Transport`]'s.
//!
//! [`OutgoingRequestManager`] takes messages without waiting and tells the producer how full the destination's
//! queue is; its senders deliver them through a [`Transport`], in order, with a deadline, and again where that
//! is safe. Nothing that was accepted disappears: it is delivered, or somebody gets it back and is told why.
//!
//! | a message that | goes |
//! |---|---|
//! | is refused | back in the error, at once |
//! | is pushed out by a newer one | back to whoever pushed it out, or to the caller that waits for it |
//! | fails for good and has a caller that waits | back in the caller's error |
//! | fails for good and has none | to the [`HandBack`], which is bounded and counts what it could not hold |
//! | is left at shutdown | back from [`OutgoingRequestManager::shutdown`] |
//!
//! The policies of the queue itself are those of [`RobustQueue`]; `docs/outbox.md` has them for operators.
//!
//! # Example
//!
//! ```
//! use std::convert::Infallible;
//! use std::net::SocketAddr;
//! use tidegate::MessageClass;
//! use tidegate::outbox::{Delivery, OutgoingConfig, OutgoingRequestManager, Transport};
//!
//! /// Delivers nothing but its length.
//! struct Lengths;
//!
//! impl Transport for Lengths {
//!     type Destination = SocketAddr;
//!     type Message = String;
//!     type Reply = usize;
//!     type Error = Infallible;
//!
//!     async fn send(
//!         &self,
//!         _destination: &SocketAddr,
//!         batch: &[String],
//!     ) -> Delivery<usize, Infallible> {
//!         Ok(batch.iter().map(String::len).collect())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (manager, _hand_back) = OutgoingRequestManager::new(Lengths, OutgoingConfig::default())?;
//! let worker: SocketAddr = "127.0.0.1:9000".parse()?;
//!
//! let put = manager.enqueue(&worker, MessageClass::Data, "progress".to_owned())?;
//! assert!(put.delay.is_zero(), "the queue is nearly empty: send on");
//!
//! let reply = manager.send(&worker, MessageClass::Dispatch, "job".to_owned()).await?;
//! assert_eq!(reply, 3);
//! assert_eq!(manager.stats()[0].sender.total_sent, 2);
//! # Ok(())
//! # }
//! ```

mod config;
mod envelope;
mod error;
mod hand_back;
mod lane;
mod manager;
mod sender;
mod transport;

pub use config::{OutgoingConfig, OutgoingConfigError};
pub use envelope::FailedMessage;
pub use error::{EnqueueError, EnqueueReason, OutgoingSendError, SendFailure};
pub use hand_back::HandBack;
pub use manager::{ManagerTotals, OutgoingRequestManager};
pub use tidegate_core::outbox::{
    DestinationQueueStats, DestinationSlow, Put, QueueConfig, QueueConfigError, QueueDelays,
    QueueState, QueueStats, Refused, RefusedReason, RobustQueue, SenderStats,
};
pub use tidegate_core::retry::{BudgetLimits, Failure, Safety};
pub use transport::{Delivery, Destination, Transport, Undelivered};
