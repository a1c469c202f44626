//! Tidegate as a library: the decisions of `tidegate-core`, and what runs them inside other programs.
//!
//! Keep a service useful when more is asked of it than it can do: admit by priority within exact limits, and
//! refuse the rest at once, before it has cost anything.
//!
//! - [`admission`]: the decisions themselves, synchronous and without a lock, for any kind of server.
//! - [`layer`]: the same as a tower layer, for HTTP services (axum, tonic, hyper).
//! - [`outbox`]: one bounded queue and one sender for each destination of what goes out.
//! - [`routing`]: a worker for each request that has room for it, or a refusal when none has.
//! - [`retry`]: the other side: a client that tries again without making an overload worse.
//! - [`channel`]: between two stages of the ingestion pipeline, a window that can change at any time.
//! - [`pipeline`]: usage records on their way from a socket to a store, within windows that follow the load.
//! - [`client`]: sends usage records to an ingest server, each counted once.
//! - [`ledger`]: who holds the slots of executors, in this process or among many.
//! - [`tasks`]: where tasks are kept, so that none is lost.
//! - [`store`]: where the records of the ingestion pipeline are kept.
//!
//! ```
//! use tidegate::{InFlightTracker, LoadState, MessagePriority, Role, Sharing};
//!
//! // One tracker for a process, with the recommended limits of what it is.
//! let tracker = InFlightTracker::new(Role::Worker.limits(), Sharing::Strict);
//!
//! // Decide before the message is read any further.
//! match tracker.try_admit(MessagePriority::Normal) {
//!     Ok(permit) => {
//!         // ... do the work; a permit that is dropped, also by a panic, frees its place too ...
//!         permit.success();
//!     }
//!     Err(refusal) => eprintln!("come back later: {refusal}"),
//! }
//!
//! assert_eq!(tracker.load_state(), LoadState::Healthy);
//! assert_eq!(tracker.stats().normal_acquired, 1);
//! ```

pub use tidegate_core::admission;
pub use tidegate_core::admission::{
    InFlightTracker, LoadState, MessageClass, MessageKind, MessagePriority, Outcome, OwnedPermit,
    Permit, PriorityLimits, PriorityLoadStats, Reason, Refusal, Role, Sharing,
};
pub use tidegate_core::{capacity, frame, line_protocol, sequence, signal, task, usage, window};

#[cfg(feature = "ingest")]
pub mod channel;
#[cfg(feature = "ingest")]
pub mod client;
pub mod layer;
#[cfg(feature = "tasks")]
pub mod ledger;
pub mod outbox;
#[cfg(feature = "ingest")]
pub mod pipeline;
pub mod retry;
pub mod routing;
#[cfg(feature = "ingest")]
pub mod store;
#[cfg(feature = "ingest")]
pub mod tariff;
#[cfg(feature = "tasks")]
pub mod tasks;

/// The README's example is a test, so that it stays true.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
