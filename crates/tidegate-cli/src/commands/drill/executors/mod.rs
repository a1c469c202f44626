//! Scenarios with executors, on real ones: each placement has a manager and executors of its own, in this process
//! and over HTTP.
//!
//! - `run.rs`: from a scenario to its report.
//! - `crew.rs`: the executors. `node.rs`: the manager, behind its gateway.
//! - `ours.rs`: tasks are handed in by the clock. `seed_loop.rs`: the seed's own workers instead.
//! - `progress.rs`: what is shown of it.
//! - `watch.rs`: what goes wrong when, and what is counted meanwhile.

mod crew;
mod node;
mod ours;
mod progress;
mod run;
mod seed_loop;
mod times;
mod watch;

pub use run::run;
