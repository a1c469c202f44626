use super::{ExecutorId, Ticket};
use std::time::Duration;

/// What a manager has to do for its dispatcher. Each is answered by one of the dispatcher's methods.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Send it there: [`answered`](super::Dispatcher::answered).
    Execute {
        /// Which attempt.
        ticket: Ticket,
        /// Where.
        executor: ExecutorId,
    },
    /// Reserve a slot there first: [`reserved`](super::Dispatcher::reserved).
    Reserve {
        /// For which attempt.
        ticket: Ticket,
        /// Where.
        executor: ExecutorId,
    },
    /// Take a slot of any of these from the ledger first: [`leased`](super::Dispatcher::leased).
    Lease {
        /// For which attempt.
        ticket: Ticket,
        /// Of whom.
        executors: Vec<ExecutorId>,
    },
    /// Leave the ledger's line, or give its slot back.
    Unlease {
        /// Which attempt.
        ticket: Ticket,
    },
}

/// What an executor said to an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// It has the slot.
    Accepted,
    /// All slots are taken.
    Full {
        /// When to come back.
        retry_after: Duration,
    },
    /// It can't have heard of the attempt: nobody answers there.
    Unreachable,
    /// The reservation is not there any more.
    Gone,
}

/// What the ledger said to an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeaseAnswer {
    /// It has a slot there.
    Granted(ExecutorId),
    /// It has a place in the ledger's line.
    Waiting,
    /// The ledger can't be asked.
    Unavailable,
}
