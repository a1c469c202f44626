//! Links to executors: by the HTTP contract, or by calls to an executor of this process.
//! Uses `executor` and `execution`.
//! Must not know tasks, queues or leases.

mod connector;
mod http_link;
mod link;
mod local_link;
mod response;
mod target;

pub use link::Link;
pub use response::{ExecutorResponse, PollResponse};
pub use target::{ExecutorTarget, HttpTarget};
