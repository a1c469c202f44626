use crate::store::StoreError;
use std::sync::Arc;
use tidegate_core::task::{OutputChunk, TaskId, TaskSpec, TaskState, TaskStatus};

/// A task as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRecord {
    /// Its name.
    pub id: TaskId,
    /// What is to be done.
    pub spec: Arc<TaskSpec>,
    /// Where it stands.
    pub state: TaskState,
}

/// A task that is to be kept.
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

/// What became of a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "made once a call, and read at once")]
pub enum Submission {
    /// It is durable now.
    New,
    /// The same was submitted before, under this name or with this key.
    Same(TaskRecord),
    /// Something else was submitted before under this name.
    OtherUnderId(TaskId),
    /// Something else was submitted before with this key.
    OtherUnderKey(TaskId),
}

/// A step of a task that is to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The task.
    pub id: TaskId,
    /// Where it stands now. Kept only if the version before it is the newest.
    pub state: TaskState,
    /// What it wrote, all of it, with its last step.
    pub output: Option<Vec<OutputChunk>>,
}

/// What became of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "made once a call, and read at once")]
pub enum Kept {
    /// It is kept.
    Yes,
    /// Somebody else was first: this is where the task stands. `None` when there is no such task.
    Conflict(Option<TaskState>),
}

/// Which tasks to list, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskQuery {
    /// Those in this status alone.
    pub status: Option<TaskStatus>,
    /// Those that come after this place, which an earlier page gave.
    pub after: Option<String>,
    /// At most so many.
    pub limit: usize,
}

/// Some tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskPage {
    /// The newest first.
    pub tasks: Vec<TaskRecord>,
    /// Where the next page starts, when there may be one.
    pub next: Option<String>,
}

// === impl TaskQuery ===

impl TaskQuery {
    /// The place in the order of submission before which the page starts.
    pub(super) fn place(&self) -> Result<Option<u64>, StoreError> {
        let place = self.after.as_deref().map(|text| {
            text.parse().map_err(|_| {
                StoreError::Refused(format!("{text:?} is no place in the list that a page gave"))
            })
        });
        place.transpose()
    }
}
