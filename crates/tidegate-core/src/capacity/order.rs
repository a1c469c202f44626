use super::{ExecutorId, Ticket};
use std::time::Duration;

/// Action that a manager carries out for its dispatcher. Each is answered by one of the dispatcher's methods.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Order {
    /// Send the attempt to the executor; answered by [`answered`](super::Dispatcher::answered).
    Execute {
        /// Attempt to send.
        ticket: Ticket,
        /// Executor to send to.
        executor: ExecutorId,
    },
    /// Reserve a slot first; answered by [`reserved`](super::Dispatcher::reserved).
    Reserve {
        /// Attempt to reserve for.
        ticket: Ticket,
        /// Executor to reserve at.
        executor: ExecutorId,
    },
    /// Lease a slot of any of these from the ledger first; answered by [`leased`](super::Dispatcher::leased).
    Lease {
        /// Attempt to lease for.
        ticket: Ticket,
        /// Executors with a suitable runtime.
        executors: Vec<ExecutorId>,
    },
    /// Leave the ledger's queue, or release the lease.
    Unlease {
        /// Attempt to release.
        ticket: Ticket,
    },
}

/// Executor's answer to an attempt or a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExecutorAnswer {
    /// The attempt has the slot.
    Accepted,
    /// All slots are in use.
    Full {
        /// Pause before the next request.
        retry_after: Duration,
    },
    /// The executor is unreachable, so the request was not delivered.
    Unreachable,
    /// The reservation no longer exists.
    Gone,
}

/// Ledger's answer to a lease request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LeaseAnswer {
    /// A slot of this executor is leased.
    Granted(ExecutorId),
    /// Queued in the ledger.
    Waiting,
    /// The ledger can't be reached.
    Unavailable,
}
