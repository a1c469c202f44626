use std::time::Duration;
use tidegate::task::{SpecError, TaskId};

/// A wish about a task was not granted. Nothing changed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DeskError {
    /// The task can't be as asked.
    #[error("{0}")]
    Spec(#[from] SpecError),
    /// Nobody runs that.
    #[error("no executor has the runtime {given:?}; there are: {}", known.join(", "))]
    UnknownRuntime {
        /// What was asked for.
        given: String,
        /// What there is.
        known: Vec<String>,
    },
    /// Something else has that name.
    #[error("the id {0} stands for another task already: choose another id, or none")]
    OtherUnderId(TaskId),
    /// Something else was submitted with that key.
    #[error("this idempotency key was used for another task already, {0}")]
    OtherUnderKey(TaskId),
    /// There is no such task.
    #[error("there is no task {0}; it may have been forgotten after its time")]
    NotFound(TaskId),
    /// It is over, and can't be cancelled.
    #[error("the task {id} is over: it has {status}")]
    Over {
        /// The task.
        id: TaskId,
        /// How it ended.
        status: &'static str,
    },
    /// As many wait as may wait.
    #[error("{waiting} tasks wait, and no more may: come back later")]
    LineFull {
        /// How many wait.
        waiting: u64,
        /// When there may be room.
        retry_after: Duration,
    },
    /// The store can't be used now. A submission may have been kept all the same: submit it again with the same id
    /// or key.
    #[error("the store of tasks: {0}")]
    Store(String),
    /// The store will never take it as it is.
    #[error("{0}")]
    Refused(String),
    /// It is about to end.
    #[error("this node is about to end, and takes nothing more")]
    Draining,
}
