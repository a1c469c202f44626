//! JSON messages of the executor contract. A caller needs only `eval_id`, `code`, `ttl` and `reservation_id`;
//! every other field has a default.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate::progress::Progress;
use tidegate::task::{EndReason, Ending, OutputChunk, TaskOutcome};

/// Response of `GET /capacity`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CapacityReport {
    /// Name of the executor.
    pub executor_id: String,
    /// One more execution would be accepted now.
    pub can_accept: bool,
    /// Executions that hold a slot.
    pub running: u32,
    /// All slots.
    pub max_concurrent: u32,
    /// Free slots.
    pub available_slots: u32,
    /// Slots reserved for executions that have not started.
    #[serde(default)]
    pub reserved: u32,
    /// `process`, `http` or `mock`; empty when not reported.
    #[serde(default)]
    pub kind: String,
    /// Runtimes that it has; empty when not reported: then it may run anything.
    #[serde(default)]
    pub runtimes: Vec<String>,
    /// Layers of the sandbox around an execution.
    #[serde(default)]
    pub sandbox: Vec<SandboxLayer>,
    /// Ids of the executions that hold a slot. `None` when not reported.
    #[serde(default)]
    pub executions: Option<Vec<String>>,
    /// The executor shuts down and accepts nothing more.
    #[serde(default)]
    pub draining: bool,
}

/// One layer of the sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxLayer {
    /// Name, such as `bubblewrap`.
    pub layer: String,
    /// The layer is in force.
    pub active: bool,
    /// Effect of the layer, or why it is missing.
    pub detail: String,
}

/// Request of `POST /execute`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecuteBody {
    /// Id of the task.
    pub eval_id: String,
    /// Code to run.
    pub code: String,
    /// Runtime that runs the code; default: the executor's first.
    #[serde(default, alias = "runtime", skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Reservation to use, if one was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation_id: Option<String>,
    /// Attempt at the task, from 1.
    #[serde(default = "first_attempt")]
    pub attempt: u32,
    /// Longest run time in milliseconds; default: the executor's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Lease in milliseconds: the executor stops the execution when nobody asks for it for so long. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_ms: Option<u64>,
    /// Arguments after the code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Variables added to the runtime's environment.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
}

/// Response of `POST /execute`; a repeated request gets the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    /// Always `started`.
    pub status: String,
    /// Id of the execution, for `/executions/{id}`: `eval_id@attempt`.
    pub container_id: String,
    /// Fence of this grant, higher than that of every earlier grant.
    #[serde(default)]
    pub fence: u64,
}

/// Request of `POST /reserve`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReserveBody {
    /// Id of the task.
    pub eval_id: String,
    /// Lifetime of the reservation in seconds.
    #[serde(default = "default_ttl_s")]
    pub ttl: f64,
    /// Attempt at the task, from 1.
    #[serde(default = "first_attempt")]
    pub attempt: u32,
}

/// Response of `POST /reserve`; a repeated request gets the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reserved {
    /// Id of the reservation, for `POST /execute`.
    pub reservation_id: String,
    /// Fence of this grant, higher than that of every earlier grant.
    #[serde(default)]
    pub fence: u64,
    /// Milliseconds until the reservation expires.
    #[serde(default)]
    pub expires_in_ms: u64,
}

/// State of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionState {
    /// The execution has its slot and is being started.
    Starting,
    /// The execution runs.
    Running,
    /// The execution ended with exit status 0.
    Succeeded,
    /// The execution ended in any other way by itself.
    Failed,
    /// The execution was stopped: cancelled, lease expired, or the executor shuts down.
    Cancelled,
}

/// Query of `GET /executions/{id}`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecutionQuery {
    /// Longest wait for a change; 0 without `wait_ms`.
    pub wait: Duration,
    /// Position in the output after which the response continues.
    pub after: u64,
    /// Version of the progress above which the wait ends. `None`: progress does not end the wait.
    pub progress: Option<u64>,
    /// Fence of the caller's grant, if given.
    pub fence: Option<u64>,
}

/// Response of `GET /executions/{id}?wait_ms=…&after=…&progress=…&fence=…`.
///
/// With `wait_ms` the executor delays the response by at most so long, until the state changes, or there is output
/// after `after` or progress above the version `progress`. The request renews the execution's lease, unless
/// `fence` is given and is another's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExecutionView {
    /// `eval_id@attempt`.
    pub id: String,
    /// Id of the task.
    pub eval_id: String,
    /// Attempt at the task.
    pub attempt: u32,
    /// Fence of its grant.
    #[serde(default)]
    pub fence: u64,
    /// State now.
    pub state: ExecutionState,
    /// Reason of its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<EndReason>,
    /// Exit status of its process, when it exited by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Explanation for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Names of what else the sandbox had to stop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped: Vec<String>,
    /// Run time so far in milliseconds.
    #[serde(default)]
    pub ran_ms: u64,
    /// Output after `after`.
    #[serde(default)]
    pub output: Vec<OutputChunk>,
    /// Offset to pass as `after` in the next request.
    #[serde(default)]
    pub next: u64,
    /// The limit cut the output.
    #[serde(default)]
    pub output_cut: bool,
    /// Newest progress, if there is some. Invalid progress of a foreign executor counts as none.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "valid")]
    pub progress: Option<Progress>,
    /// Number of changes of the progress: higher means newer.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub progress_version: u64,
    /// Reports of progress that were not used because they were invalid or too many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub progress_ignored: u64,
}

/// Response of `POST /executions/{id}/progress`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgressAccepted {
    /// `eval_id@attempt`.
    pub id: String,
    /// Version of the progress with this report.
    pub progress_version: u64,
    /// Names that were not used because there are too many.
    pub refused_names: usize,
}

/// Response of `DELETE /executions/{id}`. An unknown execution will be refused when it is requested later.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeletedExecution {
    /// `eval_id@attempt`.
    pub id: String,
    /// `stopping`, `ended` or `unknown`.
    pub was: String,
}

// === impl ExecutionView ===

impl ExecutionView {
    /// The ending, once the execution has ended.
    #[must_use]
    pub fn ending(&self) -> Option<Ending> {
        let outcome = match self.state {
            ExecutionState::Starting | ExecutionState::Running => return None,
            ExecutionState::Succeeded => TaskOutcome::Succeeded,
            ExecutionState::Failed => TaskOutcome::Failed,
            ExecutionState::Cancelled => TaskOutcome::Cancelled,
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

/// Longest message of a foreign executor that is stored with a task.
const MESSAGE_CHARS_MAX: usize = 4_096;
/// Most names of stopped things that are stored with a task.
const STOPPED_MAX: usize = 16;

fn short(name: &str) -> String {
    name.chars().take(64).collect()
}

fn valid<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Progress>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(from)?).ok())
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn first_attempt() -> u32 {
    1
}

fn default_ttl_s() -> f64 {
    30.0
}
