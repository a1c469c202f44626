use crate::agenda::Time;
use tidegate_core::capacity::{ExecutorId, Ticket};
use tidegate_core::task::{ExecutionKey, TaskId};

/// One attempt at a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) ticket: Ticket,
    pub(super) attempt: u32,
}

/// Who asks: a life of a manager, about an attempt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller {
    pub(super) manager: usize,
    pub(super) life: u32,
    pub(super) key: Key,
}

/// A request to an executor.
#[derive(Clone, Copy, Debug)]
pub(super) struct Question {
    pub(super) from: Caller,
    pub(super) to: ExecutorId,
    pub(super) ask: Ask,
    /// How long its answer is waited for; `None` when nobody does, or not any more.
    pub(super) deadline: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    Execute,
    Reserve,
    /// The long question for its end.
    Follow,
    /// It must not be started any more.
    Delete,
    /// How full it is, with what the dispatcher wants to know of the time when it was asked.
    Capacity {
        changes: u64,
    },
}

/// What comes of a question. Each has one of these in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// It has the slot.
    Taken {
        fence: u64,
    },
    Full,
    /// It was cancelled before it came.
    Gone,
    Runs {
        fence: u64,
    },
    Over {
        fence: u64,
        /// By the executor, because nobody asked for it any more.
        stopped: bool,
    },
    /// The executor knows nothing of it.
    Nothing,
    Deleted,
    Capacity {
        taken: u32,
    },
    /// Nobody listens there: nothing was heard.
    Refused,
    /// It was sent, and nobody knows what became of it.
    Silence,
}

// === impl Key ===

impl Key {
    /// Its name at executors and in the ledger.
    pub(super) fn name(self) -> Option<ExecutionKey> {
        let id: TaskId = self.ticket.0.to_string().parse().ok()?;
        Some(id.attempt(self.attempt))
    }

    pub(super) fn named(name: &ExecutionKey) -> Option<Self> {
        let ticket = Ticket(name.task.as_str().parse().ok()?);
        Some(Self { ticket, attempt: name.attempt })
    }
}
