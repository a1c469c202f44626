//! Overload control for Rust services: admission by priority, busy-aware routing, bounded queues, retries with a
//! budget, backpressure from the store to the sender, and slots of executors.
//!
//! The decisions are those of `tidegate-core`, which reads no clock and does no IO; this crate runs them inside
//! other programs. The default features are empty: admission and the tower layer need no runtime and no database.
//!
//! | module | content | feature |
//! |---|---|---|
//! | [`admission`] | in-flight limits by priority, synchronous and lock-free | |
//! | [`layer`] | admission, and a limit that is found, as tower layers for HTTP services (axum, tonic, hyper) | |
//! | [`limit`] | a concurrency limit that is found from the requests themselves: decisions only | |
//! | [`queue`] | requests that wait, served by priority and fair between clients: decisions only | |
//! | [`capacity`] | slots of executors and the dispatch of tasks: decisions only | |
//! | [`task`] | the specification and the state machine of a task | |
//! | [`signal`] | backpressure levels and signals | |
//! | [`membership`] | rules of a cluster's membership: decisions only | |
//! | [`sequence`] | duplicate detection for numbered batches | |
//! | [`window`] | adaptive windows of pipeline stages: decisions only | |
//! | [`rng`] | a random number generator that threads share | |
//! | `routing` | an upstream with room for each request, after a wait by priority, or a refusal | `routing` |
//! | `outbox` | one bounded queue and one sender for each destination | `outbox` |
//! | `retry` | a client that retries without adding to an overload | `retry` |
//! | `channel` | a channel whose window can change at any time | `ingest` |
//! | `client` | a client that sends usage records, each counted once | `ingest` |
//! | `pipeline` | the ingestion pipeline, from bytes to the store | `ingest` |
//! | `frame`, `line_protocol` | the wire formats of usage records | `ingest` |
//! | `suggestion` | the known name nearest to a misspelt one | `ingest` |
//! | `usage`, `tariff` | usage records and their prices | `ingest` |
//! | `store` | stores of priced usage records | `ingest` with `fjall` or `postgres` |
//! | `tasks` | stores of tasks | `tasks` with `fjall` or `postgres` |
//! | `progress` | progress that executions report: decisions only | `tasks` |
//! | `ledger` | slot ledgers: in memory, or in Redis for several managers | `tasks`, `redis` |
//!
//! The feature `full` enables all of them.
//!
//! ```
//! use tidegate::{InFlightTracker, LoadState, MessagePriority, Role, Sharing};
//!
//! // One tracker for each process, with the recommended limits of its role.
//! let tracker = InFlightTracker::new(Role::Worker.limits(), Sharing::Strict);
//!
//! // Decide before the message is read any further.
//! match tracker.try_acquire(MessagePriority::Normal) {
//!     Ok(permit) => {
//!         // ... do the work; dropping the permit, also by a panic, frees its slot too ...
//!         permit.success();
//!     }
//!     Err(refusal) => eprintln!("retry later: {refusal}"),
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
#[cfg(feature = "decision-log")]
pub use tidegate_core::decision_log;
#[cfg(feature = "tasks")]
pub use tidegate_core::progress;
pub use tidegate_core::{capacity, limit, membership, queue, sequence, signal, task, window};
#[cfg(feature = "ingest")]
pub use tidegate_core::{frame, line_protocol, suggestion, usage};

#[cfg(feature = "ingest")]
pub mod channel;
#[cfg(feature = "ingest")]
pub mod client;
pub mod layer;
#[cfg(feature = "tasks")]
pub mod ledger;
#[cfg(feature = "outbox")]
pub mod outbox;
#[cfg(feature = "ingest")]
pub mod pipeline;
#[cfg(feature = "retry")]
pub mod retry;
pub mod rng;
#[cfg(feature = "routing")]
pub mod routing;
#[cfg(feature = "ingest")]
mod storage;
#[cfg(feature = "ingest")]
pub mod store;
#[cfg(feature = "ingest")]
pub mod tariff;
#[cfg(feature = "tasks")]
pub mod tasks;
