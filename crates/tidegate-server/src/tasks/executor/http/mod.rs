//! The executor's contract over HTTP: server, routes, parsing, error responses and metrics.
//! Uses the executor and `crate::http`.
//! Must not know how an execution is run.

mod access;
mod metrics;
mod parse;
mod request_error;
mod routes;
mod server;

pub use access::WorkerAccess;
pub use parse::{execute, execution_query, reserve};
pub use server::{CONNECTIONS_MAX, Worker, WorkerError, worker_config_errors};
