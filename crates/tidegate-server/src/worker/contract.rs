//! What an executor is asked and what it answers, in JSON. The fields that have no comment about their origin are
//! ours; a caller that knows only `eval_id`, `code`, `ttl` and `reservation_id` gets along with the others'
//! defaults.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tidegate::task::{EndReason, Ending, Outcome, OutputChunk};

/// `GET /capacity`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapacityReport {
    /// Who answers.
    pub executor_id: String,
    /// Whether one more would be taken now.
    pub can_accept: bool,
    /// Executions that hold a slot.
    pub running: u32,
    /// All slots.
    pub max_concurrent: u32,
    /// Slots that nobody has.
    pub available_slots: u32,
    /// Slots that are kept for executions to come.
    #[serde(default)]
    pub reserved: u32,
    /// `process`, `http` or `mock`; empty when it does not say.
    #[serde(default)]
    pub kind: String,
    /// What it can run; empty when it does not say, and may run anything.
    #[serde(default)]
    pub runtimes: Vec<String>,
    /// What stands between an execution and the machine.
    #[serde(default)]
    pub sandbox: Vec<SandboxLayer>,
    /// The executions that hold a slot, by id. `None` when it does not say.
    #[serde(default)]
    pub executions: Option<Vec<String>>,
    /// Whether it is about to end, and takes nothing more.
    #[serde(default)]
    pub draining: bool,
}

/// One layer of the sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxLayer {
    /// Its name, such as `bubblewrap`.
    pub layer: String,
    /// Whether it is in force.
    pub active: bool,
    /// What it does, or why it does not.
    pub detail: String,
}

/// `POST /execute`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecuteBody {
    /// The task.
    pub eval_id: String,
    /// What is to be run.
    pub code: String,
    /// What runs it; the executor's first when it is not said.
    #[serde(default, alias = "runtime", skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// A reservation that was made for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation_id: Option<String>,
    /// Which attempt at the task, from 1.
    #[serde(default = "first")]
    pub attempt: u32,
    /// How long it may run; the runtime's own limit when it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Stop it when nobody has asked for it for so long. Not said: it runs to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
    /// Arguments after the code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Added to the runtime's environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

/// The answer to `POST /execute`, also when it is asked again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// `started`.
    pub status: String,
    /// The execution, for `/executions/{id}`: `eval_id@attempt`.
    pub container_id: String,
    /// Higher than that of every grant before.
    #[serde(default)]
    pub fence: u64,
}

/// `POST /reserve`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReserveBody {
    /// The task.
    pub eval_id: String,
    /// How long the slot is kept, in seconds.
    #[serde(default = "half_a_minute")]
    pub ttl: f64,
    /// Which attempt at the task, from 1.
    #[serde(default = "first")]
    pub attempt: u32,
}

/// The answer to `POST /reserve`, also when it is asked again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reserved {
    /// To be given to `POST /execute`.
    pub reservation_id: String,
    /// Higher than that of every grant before.
    #[serde(default)]
    pub fence: u64,
    /// For how much longer the slot is kept.
    #[serde(default)]
    pub expires_in_ms: u64,
}

/// What an execution is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionState {
    /// It has its slot, and is being started.
    Starting,
    /// It runs.
    Running,
    /// It is over, and left with 0.
    Succeeded,
    /// It is over.
    Failed,
    /// It was stopped because somebody said so, its lease ran out, or the executor ends.
    Cancelled,
}

/// `GET /executions/{id}?wait_ms=…&after=…&fence=…`.
///
/// With `wait_ms` the answer is held back for up to so long, until the state is not what it was or something was
/// written after `after`. Asking renews the execution's lease, unless `fence` is given and is not its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecutionView {
    /// `eval_id@attempt`.
    pub id: String,
    /// The task.
    pub eval_id: String,
    /// Which attempt.
    pub attempt: u32,
    /// Its fence.
    #[serde(default)]
    pub fence: u64,
    /// What it is doing.
    pub state: ExecutionState,
    /// Why it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<EndReason>,
    /// The status with which its process left, when it left by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// What people should know about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// What else the sandbox had to stop, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped: Vec<String>,
    /// How long it has run.
    #[serde(default)]
    pub ran_ms: u64,
    /// What it wrote after `after`.
    #[serde(default)]
    pub output: Vec<OutputChunk>,
    /// To be given as `after` the next time.
    #[serde(default)]
    pub next: u64,
    /// Whether its output was cut at the limit.
    #[serde(default)]
    pub output_cut: bool,
}

/// The answer to `DELETE /executions/{id}`. What is not known will be refused if it comes yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeletedExecution {
    /// `eval_id@attempt`.
    pub id: String,
    /// `stopping`, `ended` or `unknown`.
    pub was: String,
}

// === impl ExecutionView ===

impl ExecutionView {
    /// How it ended, once it has.
    #[must_use]
    pub fn ending(&self) -> Option<Ending> {
        let outcome = match self.state {
            ExecutionState::Starting | ExecutionState::Running => return None,
            ExecutionState::Succeeded => Outcome::Succeeded,
            ExecutionState::Failed => Outcome::Failed,
            ExecutionState::Cancelled => Outcome::Cancelled,
        };
        Some(Ending {
            outcome,
            reason: self.reason.unwrap_or(EndReason::Exit),
            exit_code: self.exit_code,
            message: self.message.chars().take(MESSAGE_CHARS_MAX).collect(),
            stopped: self.stopped.iter().take(STOPPED_MAX).map(|name| short(name)).collect(),
            ran_ms: self.ran_ms,
            output_cut: self.output_cut,
        })
    }
}

/// Of what an executor says that is not ours, only so much is kept with a task.
const MESSAGE_CHARS_MAX: usize = 4_096;
const STOPPED_MAX: usize = 16;

fn short(name: &str) -> String {
    name.chars().take(64).collect()
}

fn first() -> u32 {
    1
}

fn half_a_minute() -> f64 {
    30.0
}
