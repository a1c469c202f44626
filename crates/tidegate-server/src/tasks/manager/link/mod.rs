//! Links to executors: by the HTTP contract, by the session of a worker, or by calls to an executor of this
//! process. Uses `executor`, `sessions` and `execution`. Must not know tasks, queues or leases.

mod connector;
mod http_link;
mod link;
mod local_link;
mod response;
mod session_link;
mod target;

pub use link::Link;
pub use response::{ExecutorResponse, PollResponse};
pub use target::{ExecutorTarget, HttpTarget};
