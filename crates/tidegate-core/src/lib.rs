//! Decisions of Tidegate: admission, routing, capacity, retries, backpressure, windows and tariffs.
//!
//! Nothing here reads a clock, opens a socket, uses a global random source or blocks: time and randomness are
//! arguments, and effects are the caller's. The server, the tests and the simulator therefore run the same code.
//!
//! - [`admission`]: in-flight limits by priority, with exact counts.
//! - [`capacity`]: slots of executors, their leases, and the dispatch of queued attempts.
//! - [`decision_log`]: format in which a gateway's decisions are recorded.
//! - [`frame`]: batches of records and their answers, as bytes of a connection.
//! - [`limit`]: concurrency limit of an upstream, found from its latencies.
//! - [`line_protocol`]: Influx line protocol to usage records and back.
//! - [`membership`]: rules of a cluster's membership: generations, names, replayed packets, late timers.
//! - [`outbox`]: bounded queue of one destination, with a drop policy per class.
//! - [`progress`]: progress that executions report, bounded and mergeable.
//! - [`queue`]: requests that wait for a pool of upstreams, served by priority and fair between flows.
//! - [`retry`]: backoff, retry decisions and the retry budget.
//! - [`rng`]: reproducible random number generator.
//! - [`routing`]: selection of an upstream, and refusal when all are busy.
//! - [`sequence`]: numbered batches of a sender, each counted once.
//! - [`signal`]: explicit backpressure between a receiver and its senders.
//! - [`suggestion`]: the known name nearest to a misspelt one.
//! - [`task`]: specification, state machine and endings of tasks.
//! - [`tariff`]: prices of usage by tenant, meter, hour, tier and date, in exact decimals.
//! - [`usage`]: usage records and their charges.
//! - [`window`]: adaptive windows of the ingestion pipeline's stages.

pub mod admission;
pub mod capacity;
#[cfg(feature = "decision-log")]
pub mod decision_log;
mod flow;
#[cfg(feature = "ingest")]
pub mod frame;
pub mod limit;
#[cfg(feature = "ingest")]
pub mod line_protocol;
pub mod membership;
pub mod outbox;
#[cfg(feature = "progress")]
pub mod progress;
pub mod queue;
pub mod retry;
pub mod rng;
pub mod routing;
pub mod sequence;
pub mod signal;
#[cfg(feature = "ingest")]
pub mod suggestion;
mod sync;
#[cfg(feature = "ingest")]
pub mod tariff;
pub mod task;
#[cfg(feature = "ingest")]
pub mod usage;
pub mod window;
