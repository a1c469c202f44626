use super::Ending;
use serde::{Deserialize, Serialize};
use std::fmt;

/// State of a task: everything about it that changes.
///
/// Changes only by [`after`](Self::after). A store persists a change only if the `version` it started from is
/// still the newest, so that of two concurrent writers one fails.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TaskState {
    /// Rises by one with every change.
    pub version: u64,
    /// Status of the task.
    pub status: TaskStatus,
    /// Manager that owns the task. Empty for a queued task of a store that several managers share: it belongs to
    /// nobody until one of them claims it.
    pub owner: Box<str>,
    /// Client that submitted the task; empty for a client without a token, `None` for an operator and in states of
    /// earlier versions. Never changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Box<str>>,
    /// Number of the last attempt, from 1; 0 before the first.
    pub attempt: u32,
    /// Attempt numbers under which nothing is known to have started: no executor accepted the attempt, or a
    /// restarted manager passed the number over.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u32,
    /// Attempts that failed by themselves.
    pub failures: u32,
    /// Attempts lost with their executor.
    pub losses: u32,
    /// Executor of the last attempt, if it is, or may be, still there.
    // The name that stores of earlier versions have.
    #[serde(default, alias = "placed", skip_serializing_if = "Option::is_none")]
    pub assignment: Option<TaskAssignment>,
    /// Submission time, in milliseconds of Unix time, like all times here.
    pub submitted_ms: u64,
    /// Start of the last wait in the queue.
    pub queued_ms: u64,
    /// Earliest start after a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before_ms: Option<u64>,
    /// Time at which an executor accepted the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_ms: Option<u64>,
    /// Time of the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// Cancellation was requested.
    #[serde(default, alias = "cancel_asked")]
    pub cancel_requested: bool,
    /// Ending of the task, or of the last attempt if it is to be repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
}

/// Executor of an attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TaskAssignment {
    /// Name of the executor.
    pub executor: Box<str>,
    /// Fence given by the executor on acceptance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
}

/// Status of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// Waits for a slot.
    Queued,
    /// Accepted by an executor.
    Provisioning,
    /// Observed running.
    Running,
    /// Exited with status 0.
    Succeeded,
    /// Ended in any other way.
    Failed,
    /// Cancelled on request.
    Cancelled,
}

// === impl TaskState ===

impl TaskState {
    /// Creates the state of a newly submitted task.
    #[must_use]
    pub fn submitted(owner: &str, now_ms: u64) -> Self {
        Self {
            version: 1,
            status: TaskStatus::Queued,
            owner: owner.into(),
            client: None,
            attempt: 0,
            skipped: 0,
            failures: 0,
            losses: 0,
            assignment: None,
            submitted_ms: now_ms,
            queued_ms: now_ms,
            not_before_ms: None,
            started_ms: None,
            ended_ms: None,
            cancel_requested: false,
            ending: None,
        }
    }

    /// Assigns the next attempt to an executor.
    pub fn assign(&mut self, executor: Box<str>) {
        self.attempt += 1;
        self.not_before_ms = None;
        self.assignment = Some(TaskAssignment { executor, fence: None });
    }

    /// True for a task that waits, and that no executor may have.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        self.status == TaskStatus::Queued && self.assignment.is_none()
    }

    /// Gives the task to nobody if it waits: any manager may claim it.
    pub fn release(&mut self) {
        if self.is_waiting() {
            self.owner = Box::default();
        }
    }

    /// Passes over the number of the next attempt, which an earlier process may have used.
    pub fn skip_attempt(&mut self) {
        self.attempt += 1;
        self.skipped += 1;
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

// === impl TaskStatus ===

impl TaskStatus {
    /// Every status.
    pub const ALL: [Self; 6] = [
        Self::Queued,
        Self::Provisioning,
        Self::Running,
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
    ];

    /// Name in responses, labels and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Provisioning => "provisioning",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Status of a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// True if the status is final.
    #[must_use]
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
