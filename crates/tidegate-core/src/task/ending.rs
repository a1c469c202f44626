use serde::{Deserialize, Serialize};
use std::fmt;

/// How an attempt, or with its last attempt a task, ended.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ending {
    /// Whether it did what it should.
    pub outcome: Outcome,
    /// Why it ended, by name.
    pub reason: EndReason,
    /// The status with which its process left, when it left by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What people should know about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What else the sandbox had to stop, by name, such as `leftover_processes`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped: Vec<String>,
    /// How long it ran, by the executor's clock.
    pub ran_ms: u64,
    /// Whether its output was cut at the limit.
    #[serde(default)]
    pub output_cut: bool,
}

/// Whether a task did what it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It ran to its end, and left with 0.
    Succeeded,
    /// It did not.
    Failed,
    /// It was told not to.
    Cancelled,
}

/// Why an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// Its process left by itself; the status says how.
    Exit,
    /// A signal that the sandbox did not send ended it.
    Signal,
    /// It ran for longer than it may.
    Timeout,
    /// It used more CPU than it may.
    CpuLimit,
    /// It used more memory than it may.
    MemoryLimit,
    /// It started more processes than it may.
    ProcessLimit,
    /// It wrote more output than is kept.
    OutputLimit,
    /// It wrote a file that is longer, or files that are more, than it may.
    FileLimit,
    /// It reached for the network.
    NetworkDenied,
    /// It wrote outside of its work folder.
    WriteDenied,
    /// It made a call that no task may make.
    CallDenied,
    /// Nobody asked for it any more.
    LeaseExpired,
    /// It was told to stop.
    Cancelled,
    /// Its runtime could not be started.
    NotStarted,
    /// The server that it was passed on to refused it or did not answer.
    HttpError,
    /// Its executor was lost, more often than is tried.
    ExecutorLost,
    /// No executor takes such a task.
    Refused,
}

// === impl Ending ===

impl Ending {
    /// An ending of which nothing else is known.
    #[must_use]
    pub fn new(outcome: Outcome, reason: EndReason) -> Self {
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

    /// The same with a message.
    #[must_use]
    pub fn because(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }
}

// === impl Outcome ===

impl Outcome {
    /// The name used in answers, labels and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

impl fmt::Display for Outcome {
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

    /// The name used in answers, labels and logs.
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
