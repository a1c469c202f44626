//! The gateway: admits, routes and proxies requests to upstreams, and answers the control plane.
//! Uses `http` and `config`. One thread accepts, the io threads serve clients, and one answers operators.
//! Must not know ingest, tasks or node: what answers beside it comes as extensions.

pub(crate) mod activity;
pub mod admin;
mod buffer;
mod control_thread;
pub mod decision_log;
mod listener;
pub mod load;
pub mod proxy;
mod reserve;
mod start;
pub mod telemetry;
pub mod upstream;

pub use admin::NodeParts;
pub use start::{Drained, Gateway, GatewayError, GatewayPulse};
