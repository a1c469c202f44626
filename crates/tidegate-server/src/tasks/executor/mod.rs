//! An executor: a fixed number of slots, the executions in them, and the HTTP contract for slots.
//! Uses `execution`, `sandbox`, `http` and `config`.
//! Must not know the manager that dispatches to it, nor the gateway.

mod checked_request;
mod config;
mod counts;
mod drain;
mod error;
mod execution;
mod execution_table;
mod executor;
mod expiry_timer;
mod http;
mod observe;
mod runner;
mod running_slot;
mod state;

pub use config::{ExecutorConfig, ExecutorConfigError, SLOTS_MAX};
pub use counts::WorkerCounts;
pub use drain::Drained;
pub use error::{ExecuteError, ProgressRefused, ReserveError};
pub use executor::Executor;
// Parsers of requests, for their fuzz target alone.
pub use http::{CONNECTIONS_MAX, Worker, WorkerAccess, WorkerError, worker_config_errors};
#[doc(hidden)]
pub use http::{execute, execution_query, reserve};
pub use observe::Seen;
pub use runner::{HttpRunner, MockRunner, Runner, TargetError};
