//! The roles of Tidegate over the network. So far: the gateway, which listens, admits by priority, and proxies
//! to upstreams.
//!
//! - [`config`]: what it is told.
//! - [`gateway`]: the running thing, its threads and connections.
//! - [`proxy`]: one request, from its head to the end of its answer.
//! - [`upstream`]: the servers behind it.
//! - [`load`]: what those servers say of their load.
//! - [`ingest`]: where usage records come in.
//! - [`manager`]: tasks, from their submission to their end.
//! - [`worker`]: an executor and its slots.
//! - [`admission`]: the advice and the alerts that go with the tracker.
//! - [`control`]: health, metrics, snapshots.
//! - [`generator`]: load over HTTP that is sent when it is due, whatever the answers do.
//! - [`mock`]: a synthetic inference server, for when there is no real one.
//! - [`rescue`]: the one place where a failure becomes an HTTP status.

pub mod admission;
pub mod chance;
pub mod config;
pub mod control;
pub mod gateway;
pub mod generator;
pub mod ingest;
pub mod load;
pub mod manager;
pub mod mock;
pub mod proxy;
pub mod rescue;
pub mod telemetry;
mod tls;
pub mod upstream;
mod wire;
pub mod worker;

/// What workers are judged by, for those who show a configuration.
pub use tidegate::routing;
pub use tls::TlsSetupError;
