//! Runners: the kinds of work that a slot can do (mock, HTTP server, sandboxed process).
//! Uses `execution`, `sandbox` and `config`.
//! Must not know slots, leases or the executor's HTTP contract.

mod http_runner;
mod mock_runner;
mod runner;

pub use http_runner::{HttpRunner, TargetError};
pub use mock_runner::MockRunner;
pub use runner::Runner;
