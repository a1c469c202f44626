use super::http_link::HttpLink;
use super::local_link;
use super::response::{ExecutorResponse, PollResponse};
use super::target::ExecutorTarget;
use crate::tasks::execution::{CapacityReport, ExecuteBody, ReserveBody};
use crate::tasks::executor::Executor;
use std::time::Duration;
use tidegate::task::ExecutionKey;

/// Link to an executor.
pub enum Link {
    /// By the HTTP contract.
    Http(Box<HttpLink>),
    /// By calls to an executor of this process.
    Local(Executor),
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

    /// Asks for the capacity.
    pub async fn capacity(&self) -> Result<CapacityReport, String> {
        match self {
            Self::Http(link) => link.capacity().await,
            Self::Local(executor) => Ok(executor.capacity()),
        }
    }

    /// The capacity of an executor of this process, now.
    pub fn local_capacity(&self) -> Option<CapacityReport> {
        match self {
            Self::Http(_) => None,
            Self::Local(executor) => Some(executor.capacity()),
        }
    }

    /// Starts an execution, and returns its fence. Must be sent once: an executor that restarts meanwhile has
    /// forgotten the first request.
    pub async fn execute(&self, body: &ExecuteBody) -> ExecutorResponse<u64> {
        match self {
            Self::Http(link) => link.execute(body).await,
            Self::Local(executor) => local_link::execute(executor, body.clone()),
        }
    }

    /// Reserves a slot, and returns the id of the reservation. May be repeated.
    pub async fn reserve(&self, body: &ReserveBody) -> ExecutorResponse<String> {
        match self {
            Self::Http(link) => link.reserve(body).await,
            Self::Local(executor) => local_link::reserve(executor, body),
        }
    }

    /// Waits for a change of an execution or output after an offset. Also renews the execution's lease.
    pub async fn poll(
        &self,
        key: &ExecutionKey,
        fence: Option<u64>,
        wait: Duration,
        after: u64,
    ) -> PollResponse {
        match self {
            Self::Http(link) => link.poll(key, fence, wait, after).await,
            Self::Local(executor) => match executor.execution(key, fence, wait, after).await {
                Some(view) => PollResponse::View(Box::new(view)),
                None => PollResponse::NotFound,
            },
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
        }
    }

    /// True when the executor ends with this process.
    pub fn is_local(&self) -> bool {
        matches!(self, Self::Local(_))
    }
}
