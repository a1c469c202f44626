use super::http_link::HttpLink;
use super::local_link;
use crate::worker::{CapacityReport, ExecuteBody, ExecutionView, Executor, ReserveBody};
use std::time::Duration;
use tidegate::task::ExecutionKey;

/// The way to an executor.
pub(super) enum Link {
    /// By the contract over HTTP.
    Http(Box<HttpLink>),
    /// In this process.
    Local(Executor),
}

/// What came of an attempt to start something on an executor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Offered<T> {
    /// It was taken.
    Taken(T),
    /// All slots are taken.
    Full {
        /// When to come back.
        retry_after: Duration,
    },
    /// Nobody answers there, and nobody has heard of it.
    Unreachable,
    /// The reservation is not there any more, or the attempt was cancelled before it came.
    Gone,
    /// The executor will never take it as it is.
    Never(String),
    /// It was sent, and what became of it is not known.
    Unknown(String),
}

/// What an executor says of an execution.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Told {
    /// This.
    View(Box<ExecutionView>),
    /// It has never heard of it, or has forgotten it: it was started anew since.
    Nothing,
    /// It did not answer.
    Silence(String),
}

// === impl Link ===

impl Link {
    /// How full it is.
    pub async fn capacity(&self) -> Result<CapacityReport, String> {
        match self {
            Self::Http(link) => link.capacity().await,
            Self::Local(executor) => Ok(executor.capacity()),
        }
    }

    /// Starts an execution; its fence. To be sent once: an executor that was started anew meanwhile has forgotten
    /// it.
    pub async fn execute(&self, body: &ExecuteBody) -> Offered<u64> {
        match self {
            Self::Http(link) => link.execute(body).await,
            Self::Local(executor) => local_link::execute(executor, body.clone()),
        }
    }

    /// Reserves a slot; the reservation's name. Safe to repeat.
    pub async fn reserve(&self, body: &ReserveBody) -> Offered<String> {
        match self {
            Self::Http(link) => link.reserve(body).await,
            Self::Local(executor) => local_link::reserve(executor, body),
        }
    }

    /// What has become of an execution, waiting for something new; also says that it is still wanted.
    pub async fn follow(
        &self,
        key: &ExecutionKey,
        fence: Option<u64>,
        wait: Duration,
        after: u64,
    ) -> Told {
        match self {
            Self::Http(link) => link.follow(key, fence, wait, after).await,
            Self::Local(executor) => match executor.execution(key, fence, wait, after).await {
                Some(view) => Told::View(Box::new(view)),
                None => Told::Nothing,
            },
        }
    }

    /// Stops an execution, or keeps it from being started. Whether the executor heard it.
    pub async fn cancel(&self, key: &ExecutionKey) -> bool {
        match self {
            Self::Http(link) => link.cancel(key).await,
            Self::Local(executor) => {
                executor.cancel(key);
                true
            }
        }
    }

    /// Whether executions there end with this process.
    pub fn ends_with_us(&self) -> bool {
        match self {
            Self::Http(_) => false,
            Self::Local(_) => true,
        }
    }
}
