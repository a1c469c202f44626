use serde::{Deserialize, Serialize};
use std::fmt;

/// Result of an attempt, or of a task with its last attempt.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ending {
    /// TaskOutcome of the attempt.
    pub outcome: TaskOutcome,
    /// Reason of the end.
    pub reason: EndReason,
    /// Exit status of the process, if it exited by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Explanation for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Violations besides the reason that the sandbox stopped, by name, such as `leftover_processes`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped: Vec<String>,
    /// Run time by the executor's clock, in milliseconds.
    pub ran_ms: u64,
    /// True if the output was truncated at its limit.
    #[serde(default)]
    pub output_cut: bool,
}

/// TaskOutcome of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskOutcome {
    /// Exited with status 0.
    Succeeded,
    /// Ended in any other way.
    Failed,
    /// Cancelled on request.
    Cancelled,
}

/// Reason why an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The process exited by itself; the status says how.
    Exit,
    /// A signal that the sandbox did not send ended it.
    Signal,
    /// The run time limit was exceeded.
    Timeout,
    /// The CPU limit was exceeded.
    CpuLimit,
    /// The memory limit was exceeded.
    MemoryLimit,
    /// The process limit was exceeded.
    ProcessLimit,
    /// The output limit was exceeded.
    OutputLimit,
    /// The size limit of one file or of all files was exceeded.
    FileLimit,
    /// The task tried to use the network.
    NetworkDenied,
    /// The task tried to write outside of its work folder.
    WriteDenied,
    /// The task made a system call that is denied.
    CallDenied,
    /// Its lease expired.
    LeaseExpired,
    /// The task was cancelled.
    Cancelled,
    /// Its runtime could not be started.
    NotStarted,
    /// The upstream it was forwarded to refused it or did not answer.
    HttpError,
    /// Its executor was lost, more often than the limit allows.
    ExecutorLost,
    /// No executor accepts such a task.
    Refused,
}

// === impl Ending ===

impl Ending {
    /// Creates an ending without details.
    #[must_use]
    pub fn new(outcome: TaskOutcome, reason: EndReason) -> Self {
        Self {
            outcome,
            reason,
            exit_code: None,
            message: String::new(),
            stopped: Vec::new(),
            ran_ms: 0,
            output_cut: false,
        }
    }

    /// Sets the message.
    #[must_use]
    pub fn because(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }
}

// === impl TaskOutcome ===

impl TaskOutcome {
    /// Name in responses, labels and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for TaskOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

// === impl EndReason ===

impl EndReason {
    /// Every reason.
    pub const ALL: [Self; 17] = [
        Self::Exit,
        Self::Signal,
        Self::Timeout,
        Self::CpuLimit,
        Self::MemoryLimit,
        Self::ProcessLimit,
        Self::OutputLimit,
        Self::FileLimit,
        Self::NetworkDenied,
        Self::WriteDenied,
        Self::CallDenied,
        Self::LeaseExpired,
        Self::Cancelled,
        Self::NotStarted,
        Self::HttpError,
        Self::ExecutorLost,
        Self::Refused,
    ];

    /// Name in responses, labels and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exit => "exit",
            Self::Signal => "signal",
            Self::Timeout => "timeout",
            Self::CpuLimit => "cpu_limit",
            Self::MemoryLimit => "memory_limit",
            Self::ProcessLimit => "process_limit",
            Self::OutputLimit => "output_limit",
            Self::FileLimit => "file_limit",
            Self::NetworkDenied => "network_denied",
            Self::WriteDenied => "write_denied",
            Self::CallDenied => "call_denied",
            Self::LeaseExpired => "lease_expired",
            Self::Cancelled => "cancelled",
            Self::NotStarted => "not_started",
            Self::HttpError => "http_error",
            Self::ExecutorLost => "executor_lost",
            Self::Refused => "refused",
        }
    }
}

impl fmt::Display for EndReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_serde_writes() {
        for reason in EndReason::ALL {
            let written = serde_json::to_value(reason).unwrap();
            assert_eq!(written, reason.name());
        }
    }
}
