use super::command::{Command, Reply};
use super::error::TaskError;
use super::view::{ExecutorList, ProgressSeriesView, Submit, TaskList, TaskView, TaskWatch};
use tidegate::task::{OutputChunk, TaskId};
use tidegate::tasks::TaskQuery;
use tokio::sync::{mpsc, oneshot};

/// Handle to the task manager. Cheap to clone; usable from any thread.
#[derive(Clone)]
pub struct ManagerHandle {
    commands: mpsc::Sender<Command>,
}

// === impl ManagerHandle ===

impl ManagerHandle {
    pub(super) fn new(commands: mpsc::Sender<Command>) -> Self {
        Self { commands }
    }

    /// Submits a task. On return the task is durable and will be run. The second part says whether it is new;
    /// otherwise the same task was submitted before.
    ///
    /// # Errors
    ///
    /// When the task is outside of the limits, the queue is full, or the store is unavailable.
    ///
    /// # Cancel safety
    ///
    /// Dropped early, the task may be persisted all the same: submit it again with the same id or key.
    pub async fn submit(&self, submit: Submit) -> Result<(TaskView, bool), TaskError> {
        self.request(|reply| Command::Submit(Box::new(submit), reply)).await
    }

    /// Returns a task.
    ///
    /// # Errors
    ///
    /// When there is none with that id, or the store is unavailable.
    pub async fn task(&self, id: &TaskId) -> Result<TaskView, TaskError> {
        self.request(|reply| Command::Get(id.clone(), reply)).await
    }

    /// Lists tasks, the newest first.
    ///
    /// # Errors
    ///
    /// When the store is unavailable.
    pub async fn list(&self, query: TaskQuery) -> Result<TaskList, TaskError> {
        self.request(|reply| Command::List(query, reply)).await
    }

    /// Cancels a task: at once while it is queued, else as soon as its executor has stopped it.
    ///
    /// # Errors
    ///
    /// When there is none with that id, or it has ended.
    pub async fn cancel(&self, id: &TaskId) -> Result<TaskView, TaskError> {
        self.request(|reply| Command::Cancel(id.clone(), reply)).await
    }

    /// Returns the output of a task's latest attempt so far.
    ///
    /// # Errors
    ///
    /// When there is none with that id, or the store is unavailable.
    pub async fn output(&self, id: &TaskId) -> Result<Vec<OutputChunk>, TaskError> {
        self.request(|reply| Command::Output(id.clone(), reply)).await
    }

    /// Subscribes to the changes of a task.
    ///
    /// # Errors
    ///
    /// When there is none with that id, or the store is unavailable.
    pub async fn watch(&self, id: &TaskId) -> Result<TaskWatch, TaskError> {
        self.request(|reply| Command::Watch(id.clone(), reply)).await
    }

    /// Returns the progress of a task's running attempt since a time, in milliseconds of Unix time. Progress is
    /// not durable: a task that is over has none.
    ///
    /// # Errors
    ///
    /// When there is none with that id, or the store is unavailable.
    pub async fn progress(
        &self,
        id: &TaskId,
        since_ms: u64,
    ) -> Result<ProgressSeriesView, TaskError> {
        self.request(|reply| Command::Progress(id.clone(), since_ms, reply)).await
    }

    /// Returns every executor with its capacity.
    ///
    /// # Errors
    ///
    /// When the node shuts down.
    pub async fn executors(&self) -> Result<ExecutorList, TaskError> {
        self.request(Command::Executors).await
    }

    async fn request<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Result<T, TaskError> {
        let (reply, response) = oneshot::channel();
        let sent = self.commands.send(command(reply)).await;
        sent.map_err(|_| TaskError::Draining)?;
        response.await.unwrap_or(Err(TaskError::Draining))
    }
}
