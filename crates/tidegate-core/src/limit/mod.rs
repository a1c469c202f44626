//! Concurrency limit of one upstream, found from the latencies of its own requests.
//!
//! [`ConcurrencyLimit`] counts requests in rounds; [`step`] is the control law, a pure function of its state
//! and one round. The law raises the limit while throughput follows it, and lowers it where it no longer does.
//!
//! Uses nothing of this crate. Must not know queues, priorities, sockets or clocks.

mod abandoned;
mod breaker;
mod concurrency_limit;
mod config;
mod latency;
mod limit_move;
mod logarithm;
mod outcome;
mod reported;
mod round;
mod snapshot;
mod state;
mod step;

pub use concurrency_limit::{ConcurrencyLimit, Started};
pub use config::{LimitConfig, LimitGoal, UnknownGoal};
pub use latency::LatencySample;
pub use limit_move::LimitMove;
pub use outcome::UpstreamOutcome;
pub use round::Observation;
pub use snapshot::LimitSnapshot;
pub use state::LimitState;
pub use step::step;
