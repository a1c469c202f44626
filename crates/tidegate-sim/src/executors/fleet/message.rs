use crate::agenda::Time;
use tidegate_core::capacity::{ExecutorId, Ticket};
use tidegate_core::task::{ExecutionKey, TaskId};

/// Executor attempt at a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub ticket: Ticket,
    pub attempt: u32,
}

/// The sender of a request: an incarnation of a manager, for an attempt.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    pub manager: usize,
    pub incarnation: u32,
    pub key: Key,
}

/// A request to an executor.
#[derive(Clone, Copy, Debug)]
pub struct Request {
    pub from: Caller,
    pub to: ExecutorId,
    pub ask: Operation,
    /// The time until which the caller waits for the reply; `None` when it does not.
    pub deadline: Option<Time>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    Execute,
    Reserve,
    /// The long request for its end.
    Follow,
    /// Prevents the start of the attempt.
    Delete,
    /// Asks for the occupancy, with the dispatcher's change counter at the time of the request.
    Capacity {
        changes: u64,
    },
}

/// The result of a request. Every request gets exactly one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The slot is granted.
    Taken {
        fence: u64,
    },
    Full,
    /// Cancelled before it arrived.
    Gone,
    Runs {
        fence: u64,
    },
    Over {
        fence: u64,
        /// True if the executor stopped it because its lease expired.
        stopped: bool,
    },
    /// Unknown to the executor.
    Nothing,
    Deleted,
    Capacity {
        taken: u32,
    },
    /// The connection was refused: nothing was received.
    Refused,
    /// No reply: the result is unknown.
    Silence,
}

// === impl Key ===

impl Key {
    /// Returns the name at executors and in the ledger.
    pub fn name(self) -> Option<ExecutionKey> {
        let id: TaskId = self.ticket.0.to_string().parse().ok()?;
        Some(id.attempt(self.attempt))
    }

    pub fn named(name: &ExecutionKey) -> Option<Self> {
        let ticket = Ticket(name.task.as_str().parse().ok()?);
        Some(Self { ticket, attempt: name.attempt })
    }
}
