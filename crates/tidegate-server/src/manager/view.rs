use crate::worker::SandboxLayer;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tidegate::MessagePriority;
use tidegate::task::{EndReason, OutputChunk, TaskId, TaskSpec, TaskStatus};

/// A task that somebody wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submit {
    /// Its name; one is made when there is none.
    pub id: Option<TaskId>,
    /// The client's own key, 1 … 256 bytes, after the name of the client where it has one: at most 321 in all.
    pub key: Option<Box<str>>,
    /// What is to be done.
    pub spec: TaskSpec,
}

/// A task, for whoever asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskView {
    /// Its name.
    pub id: TaskId,
    /// What it is doing.
    pub status: TaskStatus,
    /// What runs it.
    pub runtime: String,
    /// Who goes first.
    pub priority: MessagePriority,
    /// How long one attempt may run.
    pub timeout_ms: u64,
    /// How often it is tried again after a failure.
    pub retries: u32,
    /// Arguments after the code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Added to the runtime's environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The latest attempt, from 1; 0 before the first.
    pub attempt: u32,
    /// Attempts that failed by themselves.
    pub failures: u32,
    /// Attempts that were lost with their executor.
    pub losses: u32,
    /// When it was submitted, in milliseconds of Unix time, like all times here.
    pub submitted_ms: u64,
    /// When its latest attempt was accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_ms: Option<u64>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// How many are served before it, while it is queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_position: Option<u64>,
    /// How long it has waited, while it is queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_age_ms: Option<u64>,
    /// How much longer it will wait, by how fast tasks have ended; absent while nobody can know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_wait_ms: Option<u64>,
    /// Not before then, after a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before_ms: Option<u64>,
    /// Where the latest attempt is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<String>,
    /// Somebody wants it to stop.
    #[serde(default)]
    pub cancel_asked: bool,
    /// Why it ended, or why its latest attempt did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<EndReason>,
    /// The status with which its process left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What people should know about how it ended.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What else the sandbox had to stop, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped: Vec<String>,
    /// How long its latest attempt ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran_ms: Option<u64>,
    /// Whether its output was cut at the limit.
    #[serde(default)]
    pub output_cut: bool,
}

/// Some tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskList {
    /// The newest first.
    pub tasks: Vec<TaskView>,
    /// To be given as `after` for the next page, when there may be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// An executor, for whoever asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutorView {
    /// Its name, by which tasks say where they are.
    pub name: String,
    /// Where it is.
    pub url: String,
    /// Whether it answers.
    pub up: bool,
    /// How many run on it.
    pub running: u32,
    /// How many slots are held for what will run on it.
    pub reserved: u32,
    /// How many may run at once.
    pub max_concurrent: u32,
    /// What it can run; empty when it does not say, and may run anything.
    #[serde(default)]
    pub runtimes: Vec<String>,
    /// How it runs things: `process`, `http` or `mock`; empty when it does not say.
    #[serde(default)]
    pub kind: String,
    /// What stands between a task and the machine.
    #[serde(default)]
    pub sandbox: Vec<SandboxLayer>,
}

/// Every executor, and how much there is to do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutorList {
    /// By name.
    pub executors: Vec<ExecutorView>,
    /// How many tasks there are in each status.
    #[serde(default)]
    pub tasks: BTreeMap<TaskStatus, u64>,
}

/// Something that those who watch a task are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskNotice {
    /// It stands here now.
    Status(Box<TaskView>),
    /// Its attempt wrote this.
    Output {
        /// Which attempt.
        attempt: u32,
        /// What.
        chunk: OutputChunk,
    },
}
