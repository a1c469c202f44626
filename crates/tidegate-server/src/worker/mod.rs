//! An executor: so many slots, what runs in them, and the contract over HTTP by which they are had.

mod answer;
mod config;
mod contract;
mod counts;
mod drain;
mod error;
mod execution;
mod executor;
mod held_slot;
mod http_runner;
mod metrics;
mod mock_runner;
mod output;
mod parse;
pub mod process;
mod request;
mod routes;
mod runner;
mod server;
mod table;
mod timer;
mod work;

pub use config::{ExecutorConfig, SLOTS_MAX, WorkerMistake};
pub use contract::{
    CapacityReport, DeletedExecution, ExecuteBody, ExecutionState, ExecutionView, ReserveBody,
    Reserved, SandboxLayer, Started,
};
pub use counts::WorkerCounts;
pub use drain::Drained;
pub use error::{ExecuteError, ReserveError};
pub use executor::Executor;
pub use http_runner::{HttpRunner, TargetError};
pub use mock_runner::MockRunner;
pub use runner::Runner;
pub use server::{CONNECTIONS_MAX, Worker, WorkerError, mistakes};
pub use work::{OutputSink, StopSignal, StopSwitch, StopWhy, Work};
