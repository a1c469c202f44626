use super::error::TaskError;
use super::view::{ExecutorList, ProgressSeriesView, Submit, TaskList, TaskView, TaskWatch};
use tidegate::task::{OutputChunk, TaskId};
use tidegate::tasks::TaskQuery;
use tokio::sync::oneshot;

/// Channel for the response to a command.
pub(super) type Reply<T> = oneshot::Sender<Result<T, TaskError>>;

/// Command of a [`ManagerHandle`](super::handle::ManagerHandle) to the manager's thread.
pub(super) enum Command {
    /// Persists and runs a task. The response says whether it is new.
    Submit(Box<Submit>, Reply<(TaskView, bool)>),
    /// Returns a task.
    Get(TaskId, Reply<TaskView>),
    /// Returns a page of tasks.
    List(TaskQuery, Reply<TaskList>),
    /// Cancels a task.
    Cancel(TaskId, Reply<TaskView>),
    /// Returns the output of a task so far.
    Output(TaskId, Reply<Vec<OutputChunk>>),
    /// Subscribes to the changes of a task.
    Watch(TaskId, Reply<TaskWatch>),
    /// Returns the progress of a task since a time, in milliseconds of Unix time.
    Progress(TaskId, u64, Reply<ProgressSeriesView>),
    /// Returns every executor.
    Executors(Reply<ExecutorList>),
}
