use super::task_progress::ProgressView;
use super::task_view::TaskView;
use tidegate::task::OutputChunk;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Subscription to the changes of a task. Starts with its state and output so far.
pub struct TaskWatch {
    /// State at the start of the subscription.
    pub view: TaskView,
    /// Output of its latest attempt at the start of the subscription.
    pub output: Vec<OutputChunk>,
    notices: Option<broadcast::Receiver<TaskNotice>>,
}

/// Change of a task.
#[derive(Clone, Debug, PartialEq)]
pub enum TaskNotice {
    /// The task's state has changed.
    Status(Box<TaskView>),
    /// An attempt has written output.
    Output {
        /// Number of the attempt.
        attempt: u32,
        /// New output.
        chunk: OutputChunk,
    },
    /// An attempt has made progress.
    Progress {
        /// Number of the attempt.
        attempt: u32,
        /// Newest progress.
        progress: Box<ProgressView>,
    },
}

// === impl TaskWatch ===

impl TaskWatch {
    /// A subscription; without `notices` it has no further changes.
    pub(in crate::tasks::manager) fn new(
        view: TaskView,
        output: Vec<OutputChunk>,
        notices: Option<broadcast::Receiver<TaskNotice>>,
    ) -> Self {
        Self { view, output, notices }
    }

    /// Waits for the next change; `None` after the last, or when another manager owns the task.
    ///
    /// # Errors
    ///
    /// When the watcher was too slow: the number of missed changes. Subscribe again.
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
