//! The serving roles of Tidegate: gateway, ingestion, tasks.
//!
//! Modules depend on each other in one direction: `node → gateway | ingest | tasks → cluster → http → config`.
//!
//! - [`node`]: puts the parts together.
//! - [`gateway`]: admits, routes and proxies requests to upstreams.
//! - [`ingest`]: takes usage records in.
//! - [`tasks`]: accepts tasks, places them on executors and runs them.
//! - [`cluster`]: trust between nodes, joining, and membership.
//! - [`http`]: what every HTTP port needs.
//! - [`config`]: the settings of a node.
//! - [`file_mode`]: the modes of new files.
//! - [`pulse`]: signs of life of threads.

pub mod cluster;
pub mod config;
pub mod file_mode;
pub mod gateway;
pub mod http;
pub mod ingest;
pub mod node;
pub mod pulse;
pub mod tasks;

/// Routing decisions, for callers that show a configuration.
pub use tidegate::routing;
