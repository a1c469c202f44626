//! Messages of a session, each the body of one kind of frame.

use super::lane::Lane;
use crate::tasks::execution::{CapacityReport, ExecuteBody, ExecutionView, ReserveBody};
use serde::{Deserialize, Serialize};
use tidegate::signal::BackpressureSignal;

/// First message of a worker on either connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// Version of the messages.
    pub version: u8,
    /// Lane of the connection.
    pub lane: Lane,
    /// Name of the worker, unique among the workers of a manager.
    pub worker: String,
    /// Number that differs between two processes of one worker: the later has the higher one.
    pub incarnation: u64,
    /// Session that a data connection belongs to.
    #[serde(default)]
    pub session: Option<u64>,
    /// Token of the worker, where the manager asks for one.
    #[serde(default)]
    pub token: Option<String>,
    /// Program and version, for operators.
    #[serde(default)]
    pub software: String,
    /// Slots and abilities, on the control connection.
    #[serde(default)]
    pub capacity: Option<CapacityReport>,
}

/// Answer of a manager to a [`Join`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JoinAnswer {
    /// The worker has joined.
    Welcome(Welcome),
    /// The worker may not join.
    Refused {
        /// Short name of the reason.
        reason: String,
        /// Explanation.
        message: String,
        /// A later try can't succeed either.
        is_final: bool,
    },
}

/// Terms of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// Number of the session, for its data connection.
    pub session: u64,
    /// Name of the manager.
    pub manager: String,
    /// Longest silence of the manager on the control connection, in milliseconds.
    pub silence_ms_max: u64,
}

/// Work for a worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Dispatch {
    /// Executions to start.
    #[serde(default)]
    pub executes: Vec<ExecuteBody>,
    /// Slots to reserve.
    #[serde(default)]
    pub reserves: Vec<ReserveBody>,
}

/// Interest of a manager in an execution: renews its lease, and asks for its updates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interest {
    /// `eval_id@attempt`.
    pub id: String,
    /// Fence of its grant, if known.
    #[serde(default)]
    pub fence: Option<u64>,
    /// Offset of the output that the manager has.
    #[serde(default)]
    pub after: u64,
}

/// State of a worker, and its answers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerState {
    /// Answers to dispatches, cancellations and leases.
    #[serde(default)]
    pub answers: Vec<Answer>,
    /// Slots and abilities, if they have changed.
    #[serde(default)]
    pub capacity: Option<CapacityReport>,
}

/// Answer of a worker about one execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// `eval_id@attempt`.
    pub id: String,
    /// Result.
    pub result: AnswerResult,
}

/// Result of a request to a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerResult {
    /// The execution has its slot.
    Started {
        /// Fence of the grant.
        fence: u64,
    },
    /// The slot is reserved.
    Reserved {
        /// Id of the reservation.
        reservation_id: String,
    },
    /// All slots are in use, or the worker shuts down.
    Full {
        /// Time until a slot may be free.
        retry_after_ms: u64,
    },
    /// The reservation has expired, or the attempt was cancelled before it arrived.
    Gone,
    /// The worker will never accept the request as it is.
    Rejected {
        /// Reason.
        why: String,
    },
    /// The cancellation has arrived.
    Cancelled,
    /// The worker does not know the execution.
    Unknown,
}

/// Updates of executions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UpdateBatch {
    /// Number of the batch on this connection.
    pub seq: u64,
    /// The worker has merged several updates into these.
    #[serde(default)]
    pub merged: bool,
    /// One update for each execution.
    pub updates: Vec<ExecutionUpdate>,
}

/// State of an execution, with its output from an offset on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExecutionUpdate {
    /// Offset of the output that comes with it.
    #[serde(default)]
    pub after: u64,
    /// State, output and progress.
    pub view: ExecutionView,
}

/// Acknowledgement of updates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateAck {
    /// Number of the last batch that was received.
    pub seq: u64,
    /// Backpressure signal of the manager.
    pub signal: BackpressureSignal,
    /// Progress of the batch that the manager did not accept.
    #[serde(default)]
    pub refused: u32,
    /// Executions whose end is durable.
    #[serde(default)]
    pub ended: Vec<String>,
}

/// Statistics of a worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkerStats {
    /// Slots that executions hold.
    pub running: u32,
    /// All slots.
    pub slots: u32,
    /// Use of all cores of the machine, 0 … 1; absent where the system does not tell.
    #[serde(default)]
    pub cpu: Option<f64>,
    /// Memory in use on the machine, in bytes.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// Memory of the machine, in bytes.
    #[serde(default)]
    pub memory_bytes_max: Option<u64>,
    /// Load average of one minute.
    #[serde(default)]
    pub load_1m: Option<f64>,
    /// Flush state of the worker.
    #[serde(default)]
    pub flush_state: String,
    /// Updates that wait for a flush.
    #[serde(default)]
    pub updates_waiting: u64,
}

/// Metrics of a worker's buffers, for debugging.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BufferMetrics {
    /// Updates merged into one that waited.
    pub merged: u64,
    /// Updates that waited for a flush because of backpressure.
    pub delayed: u64,
    /// Updates dropped at REJECT, by class: control, dispatch, data, telemetry.
    pub dropped: [u64; 4],
    /// Messages in the queue to the manager.
    pub queued: u64,
    /// Batches sent again after a failure.
    pub retried: u64,
}
