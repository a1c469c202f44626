use super::Ending;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Where a task stands. Everything about it that changes.
///
/// It changes only by [`after`](Self::after); a store keeps a change only if the `version` it started from is
/// still the newest, so that of two who know a different past one is told so.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TaskState {
    /// Rises by one with every change.
    pub version: u64,
    /// What it is doing.
    pub status: TaskStatus,
    /// The manager that answers for it.
    pub owner: Box<str>,
    /// The latest attempt that was placed anywhere, from 1; 0 before the first.
    pub attempt: u32,
    /// Attempts that failed by themselves.
    pub failures: u32,
    /// Attempts that were lost with their executor.
    pub losses: u32,
    /// Where the latest attempt is, or may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placed: Option<Placed>,
    /// When it was submitted, in milliseconds of Unix time, like all times here.
    pub submitted_ms: u64,
    /// Since when it waits, or when it began to wait the last time.
    pub queued_ms: u64,
    /// It waits until then, after a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before_ms: Option<u64>,
    /// When its latest attempt was accepted by an executor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_ms: Option<u64>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// Somebody wants it to stop.
    #[serde(default)]
    pub cancel_asked: bool,
    /// How it ended, or how the latest attempt did that is to be repeated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
}

/// Where an attempt was sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Placed {
    /// The executor's name.
    pub executor: Box<str>,
    /// What the executor gave it, once it accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
}

/// What a task is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    /// It waits for a slot.
    Queued,
    /// An executor has accepted it.
    Provisioning,
    /// It has been seen to run.
    Running,
    /// It ran to its end, and left with 0.
    Succeeded,
    /// It did not.
    Failed,
    /// It was told not to.
    Cancelled,
}

// === impl TaskState ===

impl TaskState {
    /// A task that was submitted just now.
    #[must_use]
    pub fn submitted(owner: &str, now_ms: u64) -> Self {
        Self {
            version: 1,
            status: TaskStatus::Queued,
            owner: owner.into(),
            attempt: 0,
            failures: 0,
            losses: 0,
            placed: None,
            submitted_ms: now_ms,
            queued_ms: now_ms,
            not_before_ms: None,
            started_ms: None,
            ended_ms: None,
            cancel_asked: false,
            ending: None,
        }
    }
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

    /// The name used in answers, labels and logs.
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

    /// The status of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }

    /// Whether nothing more will become of it.
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
