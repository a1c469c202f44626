//! A worker's side of its session with a manager: dials, executes what it is told, and reports.
//! Uses `executor`, `session`, `execution` and TLS of `http`.
//! Must not know managers' state, the task API, nor ports: a worker opens none.

mod control;
mod data_link;
mod dial;
mod flush;
mod followed;
mod machine;
mod pages;
mod run;
mod session_worker;
mod shared;
mod transport;

pub use dial::{ManagerTarget, ManagerTargetError};
pub use followed::FlushCounts;
pub use session_worker::{SessionWorker, SessionWorkerError, WorkerLinkView, WorkerSettings};
