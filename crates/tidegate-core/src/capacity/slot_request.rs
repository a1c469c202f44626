use crate::admission::MessagePriority;
use crate::task::ExecutionKey;
use std::time::Duration;

/// Request for a slot of one of several executors.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SlotRequest {
    /// Task and attempt. The attempt is part of the key, or a stale attempt would share its successor's slot.
    pub holder: ExecutionKey,
    /// Priority in the queue.
    pub priority: MessagePriority,
    /// Acceptable executors; the first with a free slot is taken. At most
    /// [`REQUEST_EXECUTORS_MAX`](super::SlotLedger::REQUEST_EXECUTORS_MAX).
    pub executors: Vec<Box<str>>,
    /// Lifetime of the lease unless renewed, and of the queue entry unless the holder asks again. In whole
    /// milliseconds, 1 ms … 1 day.
    pub ttl: Duration,
}

/// A leased slot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SlotLease {
    /// Holder of the lease.
    pub holder: ExecutionKey,
    /// Executor of the slot.
    pub executor: Box<str>,
    /// Fence, higher than every fence that this ledger gave before.
    pub fence: u64,
}

/// Result of a request for a slot.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Acquired {
    /// A lease. The same holder asking again gets the same lease, extended by another ttl.
    Granted(SlotLease),
    /// No slot is free, or others come first. The queue entry lasts for the request's ttl, and longer if the
    /// holder asks again.
    Waiting {
        /// Waiters ahead, at the executor with the fewest.
        ahead: u64,
    },
}
