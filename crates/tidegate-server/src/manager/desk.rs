use super::DeskError;
use super::command::{Command, Reply};
use super::view::{ExecutorList, Submit, TaskList, TaskNotice, TaskView};
use tidegate::task::{OutputChunk, TaskId};
use tidegate::tasks::TaskQuery;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc, oneshot};

/// Where tasks are handed in and asked for. Cheap to clone, and the same from any thread.
#[derive(Clone)]
pub struct TaskDesk {
    commands: mpsc::Sender<Command>,
}

/// What becomes of a task from now on. Starts with where it stands and what it has written so far.
pub struct Watch {
    /// Where it stands.
    pub view: TaskView,
    /// What its latest attempt has written so far.
    pub output: Vec<OutputChunk>,
    pub(super) notices: Option<broadcast::Receiver<TaskNotice>>,
}

// === impl TaskDesk ===

impl TaskDesk {
    pub(super) fn new(commands: mpsc::Sender<Command>) -> Self {
        Self { commands }
    }

    /// Hands a task in. It is durable when this returns, and will be done. The second part says whether it is new;
    /// otherwise the same was handed in before.
    ///
    /// # Errors
    ///
    /// When the task can't be as asked, when no more may wait, or when the store can't keep it.
    ///
    /// # Cancel safety
    ///
    /// Dropped early, the task may be kept all the same: hand it in again with the same id or key.
    pub async fn submit(&self, submit: Submit) -> Result<(TaskView, bool), DeskError> {
        self.ask(|reply| Command::Submit(Box::new(submit), reply)).await
    }

    /// A task.
    ///
    /// # Errors
    ///
    /// When there is none of that name, or the store can't be read.
    pub async fn task(&self, id: &TaskId) -> Result<TaskView, DeskError> {
        self.ask(|reply| Command::Get(id.clone(), reply)).await
    }

    /// Tasks, the newest first.
    ///
    /// # Errors
    ///
    /// When the store can't be read.
    pub async fn list(&self, query: TaskQuery) -> Result<TaskList, DeskError> {
        self.ask(|reply| Command::List(query, reply)).await
    }

    /// Stops a task: at once while it waits, as soon as its executor has stopped it while it runs.
    ///
    /// # Errors
    ///
    /// When there is none of that name, or it is over.
    pub async fn cancel(&self, id: &TaskId) -> Result<TaskView, DeskError> {
        self.ask(|reply| Command::Cancel(id.clone(), reply)).await
    }

    /// What a task has written so far, in its latest attempt.
    ///
    /// # Errors
    ///
    /// When there is none of that name, or the store can't be read.
    pub async fn output(&self, id: &TaskId) -> Result<Vec<OutputChunk>, DeskError> {
        self.ask(|reply| Command::Output(id.clone(), reply)).await
    }

    /// Everything that becomes of a task from now on.
    ///
    /// # Errors
    ///
    /// When there is none of that name, or the store can't be read.
    pub async fn watch(&self, id: &TaskId) -> Result<Watch, DeskError> {
        self.ask(|reply| Command::Watch(id.clone(), reply)).await
    }

    /// Every executor that tasks are placed on, and how full it is.
    ///
    /// # Errors
    ///
    /// When the node is about to end.
    pub async fn executors(&self) -> Result<ExecutorList, DeskError> {
        self.ask(Command::Executors).await
    }

    async fn ask<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Result<T, DeskError> {
        let (reply, answer) = oneshot::channel();
        let sent = self.commands.send(command(reply)).await;
        sent.map_err(|_| DeskError::Draining)?;
        answer.await.unwrap_or(Err(DeskError::Draining))
    }
}

// === impl Watch ===

impl Watch {
    /// What comes next; `None` when the task is over and everything was told. `Err` when the watcher was too slow,
    /// and missed so many: it should start again.
    ///
    /// # Errors
    ///
    /// How many were missed.
    pub async fn next(&mut self) -> Result<Option<TaskNotice>, u64> {
        let Some(notices) = &mut self.notices else { return Ok(None) };
        match notices.recv().await {
            Ok(notice) => {
                if matches!(&notice, TaskNotice::Status(view) if view.status.is_over()) {
                    self.notices = None;
                }
                Ok(Some(notice))
            }
            Err(RecvError::Closed) => Ok(None),
            Err(RecvError::Lagged(missed)) => Err(missed),
        }
    }
}
