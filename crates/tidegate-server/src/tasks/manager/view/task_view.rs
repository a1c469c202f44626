use super::task_progress::ProgressView;
use crate::tasks::manager::unix_time::now_ms;
use serde::{Deserialize, Serialize};
use tidegate::MessagePriority;
use tidegate::task::{EndReason, TaskId, TaskSpec, TaskStatus};
use tidegate::tasks::TaskRecord;

/// Submission of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submit {
    /// Id; the manager generates one when absent.
    pub id: Option<TaskId>,
    /// Idempotency key: the name of the client, if known, and its own key of 1 … 256 bytes; at most 321 bytes in
    /// all.
    pub key: Option<Box<str>>,
    /// Client that submits it, as [`TaskState::client`](tidegate::task::TaskState::client) has it.
    pub client: Option<Box<str>>,
    /// Code, runtime and limits.
    pub spec: TaskSpec,
}

/// A task, as the API shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskView {
    /// Id of the task.
    pub id: TaskId,
    /// Status now.
    pub status: TaskStatus,
    /// Runtime that runs the code.
    pub runtime: String,
    /// Priority in the queue.
    pub priority: MessagePriority,
    /// Client that submitted it; empty for one without a token, absent for an operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Longest run time of one attempt in milliseconds.
    pub timeout_ms: u64,
    /// Retries after a failure.
    pub retries: u32,
    /// Arguments after the code.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Names of the variables added to the runtime's environment. Their values are told to the executor alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Number of the latest attempt, from 1; 0 before the first.
    pub attempt: u32,
    /// Numbers up to `attempt` under which nothing is known to have started: an executor refused the attempt, or a
    /// restarted manager passed the number over.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u32,
    /// Attempts that failed.
    pub failures: u32,
    /// Attempts that were lost with their executor.
    pub losses: u32,
    /// Time of the submission, in milliseconds of Unix time like all times here.
    pub submitted_ms: u64,
    /// Time at which an executor accepted the latest attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_ms: Option<u64>,
    /// Time of its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// Queue position while it is queued: tasks that are dispatched before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_position: Option<u64>,
    /// More tasks than `queue_position` are ahead: with a store that managers share they are counted up to 1,000.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub queue_position_at_least: bool,
    /// Time in the queue so far, while it is queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_age_ms: Option<u64>,
    /// Estimated further wait, by the measured slot times; absent without measurements.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_wait_ms: Option<u64>,
    /// Earliest time of the next attempt, after a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before_ms: Option<u64>,
    /// Executor of the latest attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<String>,
    /// A client has requested its cancellation.
    #[serde(default)]
    pub cancel_requested: bool,
    /// Reason of its end, or of the end of its latest attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<EndReason>,
    /// Exit status of its process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Explanation of its end for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Names of what else the sandbox had to stop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped: Vec<String>,
    /// Run time of its latest attempt in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ran_ms: Option<u64>,
    /// The limit cut its output.
    #[serde(default)]
    pub output_cut: bool,
    /// Progress of the running attempt, if it reports some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ProgressView>,
}

/// Page of tasks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskList {
    /// Tasks, the newest first.
    pub tasks: Vec<TaskView>,
    /// Value for `after` of the next page, when there may be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

// === impl TaskView ===

impl TaskView {
    /// Number of attempts that were tried: started, or being sent now.
    #[must_use]
    pub fn attempts(&self) -> u32 {
        self.attempt.saturating_sub(self.skipped)
    }

    /// The view of a record, without its queue position.
    pub(in crate::tasks::manager) fn of(record: &TaskRecord) -> Self {
        let (spec, state) = (&record.spec, &record.state);
        let ending = state.ending.as_ref();
        let queued = state.status == TaskStatus::Queued;
        Self {
            id: record.id.clone(),
            status: state.status,
            runtime: spec.runtime.clone(),
            priority: spec.priority,
            client: state.client.as_deref().map(str::to_owned),
            timeout_ms: spec.timeout_ms,
            retries: spec.retries,
            args: spec.args.clone(),
            env: spec.env.keys().cloned().collect(),
            attempt: state.attempt,
            skipped: state.skipped,
            failures: state.failures,
            losses: state.losses,
            submitted_ms: state.submitted_ms,
            started_ms: state.started_ms,
            ended_ms: state.ended_ms,
            queue_position: None,
            queue_position_at_least: false,
            queue_age_ms: queued.then(|| now_ms().saturating_sub(state.queued_ms)),
            estimated_wait_ms: None,
            not_before_ms: state.not_before_ms,
            executor: state.assignment.as_ref().map(|assignment| assignment.executor.to_string()),
            cancel_requested: state.cancel_requested,
            reason: ending.map(|ending| ending.reason),
            exit_code: ending.and_then(|ending| ending.exit_code),
            message: ending.map(|ending| ending.message.clone()).unwrap_or_default(),
            stopped: ending.map(|ending| ending.stopped.clone()).unwrap_or_default(),
            ran_ms: ending.map(|ending| ending.ran_ms),
            output_cut: ending.is_some_and(|ending| ending.output_cut),
            progress: None,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}
