use super::view::{ExecutorList, Submit, TaskList, TaskView};
use super::{DeskError, Watch};
use tidegate::task::{OutputChunk, TaskId};
use tidegate::tasks::TaskQuery;
use tokio::sync::oneshot;

/// Where an answer goes.
pub(super) type Reply<T> = oneshot::Sender<Result<T, DeskError>>;

/// What the manager's thread is asked.
pub(super) enum Command {
    /// Keep and run a task. With the answer: whether it is new.
    Submit(Box<Submit>, Reply<(TaskView, bool)>),
    /// Tell of a task.
    Get(TaskId, Reply<TaskView>),
    /// Tell of many.
    List(TaskQuery, Reply<TaskList>),
    /// Stop a task.
    Cancel(TaskId, Reply<TaskView>),
    /// Tell what it has written so far.
    Output(TaskId, Reply<Vec<OutputChunk>>),
    /// Tell of everything that becomes of a task.
    Watch(TaskId, Reply<Watch>),
    /// Tell of every executor.
    Executors(Reply<ExecutorList>),
}
