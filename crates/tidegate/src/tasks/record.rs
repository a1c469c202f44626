use crate::storage::StoreError;
use std::sync::Arc;
use tidegate_core::task::{OutputChunk, TaskId, TaskSpec, TaskState, TaskStatus};

/// A stored task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRecord {
    /// Its id.
    pub id: TaskId,
    /// Its specification.
    pub spec: Arc<TaskSpec>,
    /// Its state.
    pub state: TaskState,
}

/// A new task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTask {
    /// The task.
    pub record: TaskRecord,
    /// The client's own key for it, with the client's name 1 … 321 bytes: a second submission with the key is the
    /// first one again.
    pub key: Option<Box<str>>,
    /// Of everything that was submitted but the key: tells the same submission from another under the same name.
    pub fingerprint: [u8; 16],
}

/// Result of a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "made once a call, and read at once")]
pub enum Submission {
    /// The task is durable now.
    New,
    /// The same was submitted before, under this name or with this key.
    Same(TaskRecord),
    /// Something else was submitted before under this name.
    OtherUnderId(TaskId),
    /// Something else was submitted before with this key.
    OtherUnderKey(TaskId),
}

/// A step of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The task.
    pub id: TaskId,
    /// Its new state. ChangeOutcome only if the version before it is the newest.
    pub state: TaskState,
    /// Its whole output, with its last step.
    pub output: Option<Vec<OutputChunk>>,
}

/// Result of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "made once a call, and read at once")]
pub enum ChangeOutcome {
    /// The change is persisted.
    Yes,
    /// Another change was first; this is the current state. `None` without such a task.
    Conflict(Option<TaskState>),
}

/// A query for tasks, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskQuery {
    /// Only tasks in this status.
    pub status: Option<TaskStatus>,
    /// Only tasks of this client.
    pub client: Option<Box<str>>,
    /// Only tasks after this position, from an earlier page.
    pub after: Option<String>,
    /// Maximum number of tasks.
    pub limit: usize,
}

/// A page of tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskPage {
    /// Tasks, the newest first.
    pub tasks: Vec<TaskRecord>,
    /// Position of the next page, if there may be one.
    pub next: Option<String>,
}

// === impl TaskQuery ===

impl TaskQuery {
    /// The sequence number before which the page starts.
    pub(super) fn position(&self) -> Result<Option<u64>, StoreError> {
        let position = self.after.as_deref().map(|text| {
            text.parse().map_err(|_| {
                StoreError::Refused(format!("{text:?} is no position that a page gave"))
            })
        });
        position.transpose()
    }
}
