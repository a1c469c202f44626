use super::command::Reply;
use super::view::{TaskList, TaskView};
use crate::worker::CapacityReport;
use std::time::Duration;
use tidegate::capacity::{Answer, ExecutorId, LeaseAnswer, Ticket};
use tidegate::ledger::SlotLease;
use tidegate::store::StoreError;
use tidegate::task::{ExecutionKey, OutputChunk, TaskState, TaskStatus};
use tidegate::tasks::{Submission, TaskPage, TaskRecord};

/// What the parts that wait tell the manager's thread.
pub(super) enum Event {
    /// What the store made of a submission.
    Submitted {
        /// The task.
        record: Box<TaskRecord>,
        /// Its place in memory, until it is let go.
        bytes: usize,
        /// What became of it.
        submission: Box<Result<Submission, StoreError>>,
        /// Who waits to hear it.
        reply: Reply<(TaskView, bool)>,
    },
    /// What the store has of a list.
    Listed {
        /// The page.
        page: Result<TaskPage, StoreError>,
        /// Only those in this status are wanted.
        status: Option<TaskStatus>,
        /// Who waits for it.
        reply: Reply<TaskList>,
    },
    /// Tasks of an earlier life, or of a manager that is gone.
    Adopted(Vec<TaskRecord>),
    /// What the ledger said.
    Leased {
        /// To which attempt.
        ticket: Ticket,
        /// What.
        answer: LeaseAnswer,
        /// With a slot.
        lease: Option<SlotLease>,
    },
    /// Slots may have come free in the ledger.
    LedgerChanged,
    /// What an executor said to a reservation.
    Reserved {
        /// For which attempt.
        ticket: Ticket,
        /// What.
        answer: Answer,
        /// Its name.
        reservation: Option<String>,
        /// Where it was asked for.
        executor: ExecutorId,
        /// For what.
        key: ExecutionKey,
    },
    /// What an executor said to an attempt.
    Answered {
        /// To which.
        ticket: Ticket,
        /// What.
        answer: Answer,
    },
    /// An attempt was not taken, and waits again at its old place.
    Returned {
        /// Which.
        ticket: Ticket,
        /// What the executor said.
        answer: Answer,
        /// Where the task stands.
        state: Box<TaskState>,
    },
    /// An attempt stands here now.
    Stands {
        /// Which.
        ticket: Ticket,
        /// Where.
        state: Box<TaskState>,
    },
    /// An attempt wrote something.
    Wrote {
        /// Which.
        ticket: Ticket,
        /// The attempt of its task.
        attempt: u32,
        /// What.
        chunks: Vec<OutputChunk>,
    },
    /// An attempt does not hold its slot any more.
    Freed {
        /// Which.
        ticket: Ticket,
        /// For how long it did.
        held: Duration,
    },
    /// An attempt is over for this manager.
    Over {
        /// Which.
        ticket: Ticket,
        /// Where the task stands; `None` when it is another's now.
        state: Option<Box<TaskState>>,
    },
    /// What an executor says of itself.
    Probed {
        /// Which.
        executor: ExecutorId,
        /// What; `Err` when it did not answer.
        report: Result<Box<CapacityReport>, String>,
        /// What the dispatcher said when it was asked.
        changes: u64,
    },
    /// A slot that was lost, or was an earlier life's, is held again.
    Regained {
        /// By which attempt.
        ticket: Ticket,
        /// The slot.
        lease: SlotLease,
    },
    /// The ledger had given this fence when it was last asked.
    FenceSeen {
        /// About which executor.
        executor: ExecutorId,
        /// The fence.
        fence: u64,
    },
}
