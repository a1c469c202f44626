use std::time::Duration;
use tidegate::task::{SpecError, TaskId, runtime_hint};

/// Error of a request about a task. Nothing changed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TaskError {
    /// Task outside of the limits.
    #[error("{0}")]
    Spec(#[from] SpecError),
    /// Runtime that no executor has.
    #[error("no executor has the runtime {given:?}{}", runtime_hint(given, known))]
    UnknownRuntime {
        /// Runtime requested.
        given: String,
        /// Runtimes available.
        known: Vec<String>,
    },
    /// The id belongs to a different task.
    #[error("the id {0} belongs to another task: choose another id, or none")]
    IdInUse(TaskId),
    /// The idempotency key belongs to a different task.
    #[error("this idempotency key belongs to another task, {0}")]
    KeyInUse(TaskId),
    /// Unknown task.
    #[error("there is no task {0}; ended tasks are deleted after the retention time")]
    NotFound(TaskId),
    /// The task has ended, and can't be cancelled.
    #[error("the task {id} is over: it has {status}")]
    Over {
        /// Id of the task.
        id: TaskId,
        /// Final status.
        status: &'static str,
    },
    /// The queue is full.
    #[error("the queue is full with {waiting} tasks: retry later")]
    QueueFull {
        /// Tasks that wait or run.
        waiting: u64,
        /// Time until there may be room.
        retry_after: Duration,
    },
    /// The store is unavailable. A submission may be persisted all the same: retry it with the same id or key.
    #[error("the task store: {0}")]
    Store(String),
    /// The store rejects the task as it is.
    #[error("{0}")]
    Refused(String),
    /// The node shuts down.
    #[error("this node shuts down and accepts nothing more")]
    Draining,
}
