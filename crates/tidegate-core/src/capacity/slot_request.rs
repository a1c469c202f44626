use crate::admission::MessagePriority;
use crate::task::ExecutionKey;
use std::time::Duration;

/// Who wants a slot, and where.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SlotRequest {
    /// Who: a task and its attempt. The attempt is part of the name, or a zombie would share its successor's slot.
    pub holder: ExecutionKey,
    /// Who goes first.
    pub priority: MessagePriority,
    /// Any of these executors will do; the first that has a free slot is taken. At most
    /// [`REQUEST_EXECUTORS_MAX`](super::SlotLedger::REQUEST_EXECUTORS_MAX).
    pub executors: Vec<Box<str>>,
    /// How long the slot is the holder's unless it is renewed, and how long the holder's place in the line is kept
    /// unless it asks again. In whole milliseconds, at least one and at most a day.
    pub ttl: Duration,
}

/// A slot that is held.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SlotLease {
    /// Whose it is.
    pub holder: ExecutionKey,
    /// Where it is.
    pub executor: Box<str>,
    /// Higher than every fence that this ledger gave before.
    pub fence: u64,
}

/// What became of a request for a slot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Acquired {
    /// There is one. Asked again by the same holder, it is the same one, for another ttl from then.
    Granted(SlotLease),
    /// There is none, or others come first. The request has its place in the line, which it keeps by asking again
    /// within its ttl.
    Waiting {
        /// How many come first at that of its executors for which the fewest wait.
        ahead: u64,
    },
}
