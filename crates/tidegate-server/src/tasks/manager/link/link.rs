use super::http_link::HttpLink;
use super::local_link;
use super::response::{ExecutorResponse, PollResponse};
use super::session_link::SessionLink;
use super::target::ExecutorTarget;
use crate::tasks::execution::{CapacityReport, ExecuteBody, ExecutionQuery, ReserveBody};
use crate::tasks::executor::Executor;
use crate::tasks::manager::sessions::{WorkerHub, WorkerSession};
use std::sync::Arc;
use tidegate::task::ExecutionKey;

/// Link to an executor.
pub enum Link {
    /// By the HTTP contract.
    Http(Box<HttpLink>),
    /// By calls to an executor of this process.
    Local(Executor),
    /// By the session of a worker that has dialled this manager.
    Session(SessionLink),
}

// === impl Link ===

impl Link {
    /// A link to that executor.
    pub fn new(target: &ExecutorTarget) -> Self {
        match target {
            ExecutorTarget::Http(target) => Self::Http(Box::new(HttpLink::new(target))),
            ExecutorTarget::Local(executor) => Self::Local(executor.clone()),
        }
    }

    /// A link to a worker that dials this manager.
    pub fn session(hub: Arc<WorkerHub>, worker: Arc<WorkerSession>) -> Self {
        Self::Session(SessionLink::new(hub, worker))
    }

    /// True when this is the link to that worker's session.
    pub fn is_session_of(&self, worker: &Arc<WorkerSession>) -> bool {
        matches!(self, Self::Session(link) if link.is_of(worker))
    }

    /// Asks for the capacity.
    pub async fn capacity(&self) -> Result<CapacityReport, String> {
        match self {
            Self::Http(link) => link.capacity().await,
            Self::Local(executor) => Ok(executor.capacity()),
            Self::Session(link) => link.capacity(),
        }
    }

    /// The capacity of an executor of this process, now.
    pub fn local_capacity(&self) -> Option<CapacityReport> {
        match self {
            Self::Http(_) | Self::Session(_) => None,
            Self::Local(executor) => Some(executor.capacity()),
        }
    }

    /// Starts an execution, and returns its fence. Must be sent once: an executor that restarts meanwhile has
    /// forgotten the first request.
    pub async fn execute(&self, body: &ExecuteBody) -> ExecutorResponse<u64> {
        match self {
            Self::Http(link) => link.execute(body).await,
            Self::Local(executor) => local_link::execute(executor, body.clone()),
            Self::Session(link) => link.execute(body).await,
        }
    }

    /// Reserves a slot, and returns the id of the reservation. May be repeated.
    pub async fn reserve(&self, body: &ReserveBody) -> ExecutorResponse<String> {
        match self {
            Self::Http(link) => link.reserve(body).await,
            Self::Local(executor) => local_link::reserve(executor, body),
            Self::Session(link) => link.reserve(body).await,
        }
    }

    /// Waits for a change of an execution, or output or progress after those of the query. Also renews the
    /// execution's lease.
    pub async fn poll(&self, key: &ExecutionKey, query: &ExecutionQuery) -> PollResponse {
        match self {
            Self::Http(link) => link.poll(key, query).await,
            Self::Local(executor) => match executor.follow(key, query).await {
                Some(view) => PollResponse::View(Box::new(view)),
                None => PollResponse::NotFound,
            },
            Self::Session(link) => link.poll(key, query).await,
        }
    }

    /// Stops an execution, or prevents its start. True when the executor has received the request.
    pub async fn cancel(&self, key: &ExecutionKey) -> bool {
        match self {
            Self::Http(link) => link.cancel(key).await,
            Self::Local(executor) => {
                executor.cancel(key);
                true
            }
            Self::Session(link) => link.cancel(key).await,
        }
    }

    /// Stops following an execution. Only a session follows; others are asked.
    pub fn unfollow(&self, key: &ExecutionKey) {
        if let Self::Session(link) = self {
            link.unfollow(key);
        }
    }

    /// Tells the executor that the end of an execution is durable.
    pub fn acknowledge(&self, key: &ExecutionKey) {
        if let Self::Session(link) = self {
            link.acknowledge(key);
        }
    }

    /// True when the executor ends with this process.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Local(_))
    }
}
