use super::command::Reply;
use super::view::{TaskList, TaskView};
use crate::tasks::execution::CapacityReport;
use std::time::Duration;
use tidegate::capacity::{ExecutorAnswer, ExecutorId, Ticket};
use tidegate::ledger::{Acquired, SlotLease};
use tidegate::progress::Progress;
use tidegate::store::StoreError;
use tidegate::task::{ExecutionKey, OutputChunk, TaskState, TaskStatus};
use tidegate::tasks::{Claimed, QueueDepth, StoreHint, Submission, TaskPage, TaskRecord};

/// Report of a background call or an attempt to the manager's thread.
pub(super) enum Event {
    /// The store has answered a submission.
    Submitted {
        /// The task.
        record: Box<TaskRecord>,
        /// Memory that was accounted for it, in bytes.
        bytes: usize,
        /// ExecutorAnswer of the store.
        submission: Box<Result<Submission, StoreError>>,
        /// Channel for the response.
        reply: Reply<(TaskView, bool)>,
    },
    /// The store has answered a list query.
    Listed {
        /// Page of the store.
        page: Result<TaskPage, StoreError>,
        /// Filter: tasks in this status alone.
        status: Option<TaskStatus>,
        /// Channel for the response.
        reply: Reply<TaskList>,
    },
    /// Tasks were taken over from an earlier process of this manager, or from a manager that is gone.
    Adopted(Vec<TaskRecord>),
    /// The store has answered a claim.
    Claimed(Result<Claimed, StoreError>),
    /// A claim was given back.
    GivenBack,
    /// Running tasks are handed over, as far as the store has answered.
    HandedOver,
    /// News of other managers.
    Hinted(StoreHint),
    /// The store has counted the tasks.
    QueueRead {
        /// Queued tasks that belong to nobody.
        depth: QueueDepth,
        /// Tasks that are not over.
        live: u64,
    },
    /// The slot ledger has answered a lease request.
    LeaseAnswered {
        /// The task.
        ticket: Ticket,
        /// Its answer; `None` when it could not be asked.
        answer: Option<Acquired>,
    },
    /// Slots may have become free in the slot ledger.
    LedgerChanged,
    /// An executor has answered a reservation request.
    ReservationAnswered {
        /// The task.
        ticket: Ticket,
        /// ExecutorAnswer for the dispatcher.
        answer: ExecutorAnswer,
        /// Id of the reservation, if granted.
        reservation: Option<String>,
        /// The executor.
        executor: ExecutorId,
        /// Attempt that the reservation is for.
        key: ExecutionKey,
    },
    /// An executor has accepted an attempt, or may have.
    AttemptAnswered {
        /// The task.
        ticket: Ticket,
        /// ExecutorAnswer for the dispatcher.
        answer: ExecutorAnswer,
    },
    /// An executor has not accepted an attempt: the task returns to its old queue position.
    AttemptReturned {
        /// The task.
        ticket: Ticket,
        /// ExecutorAnswer of the executor.
        answer: ExecutorAnswer,
        /// State that is persisted.
        state: Box<TaskState>,
    },
    /// The state of an attempt's task has changed.
    StateChanged {
        /// The task.
        ticket: Ticket,
        /// New state.
        state: Box<TaskState>,
    },
    /// An attempt has written output.
    OutputWritten {
        /// The task.
        ticket: Ticket,
        /// Number of the attempt.
        attempt: u32,
        /// New output.
        chunks: Vec<OutputChunk>,
    },
    /// An attempt has freed its slot.
    SlotFreed {
        /// The task.
        ticket: Ticket,
        /// Time that the attempt occupied the slot; zero when it never ran.
        slot_time: Duration,
    },
    /// An attempt is over for this manager.
    AttemptOver {
        /// The task.
        ticket: Ticket,
        /// State of the task; `None` when another manager owns it now.
        state: Option<Box<TaskState>>,
    },
    /// An executor has answered a capacity probe.
    Probed {
        /// The executor.
        executor: ExecutorId,
        /// Report, or why there was no answer.
        report: Result<Box<CapacityReport>, String>,
        /// The dispatcher's change counter at the time of the probe.
        changes: u64,
    },
    /// An attempt has made progress.
    Progressed {
        /// The execution.
        key: ExecutionKey,
        /// Everything that it has reported.
        progress: Box<Progress>,
    },
    /// A slot that was lost, or leased by an earlier process, is leased again.
    LeaseRegained {
        /// The task.
        ticket: Ticket,
        /// The lease.
        lease: SlotLease,
    },
    /// The slot ledger has reported its latest fence.
    FenceSeen {
        /// Executor for which it was asked.
        executor: ExecutorId,
        /// The fence.
        fence: u64,
    },
}
