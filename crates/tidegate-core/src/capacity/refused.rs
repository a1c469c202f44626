use super::ledger_limits as limits;
use std::fmt;

/// Refusal of an execution. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExecuteRefused {
    /// All slots are in use.
    Full,
    /// The reservation has expired, was released, or never existed.
    Gone,
    /// The key belongs to a different request.
    Conflict,
    /// The execution was cancelled before it arrived.
    Cancelled,
}

/// Refusal of a reservation. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReserveRefused {
    /// All slots are in use.
    Full,
    /// The execution has arrived already and needs no reservation.
    Started,
    /// The execution was cancelled before it arrived.
    Cancelled,
}

/// Refusal by a slot ledger. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LedgerRefused {
    /// The queue is full. A retry may succeed.
    QueueFull,
    /// Too many executors are known. A retry may succeed: executors that are not declared again are forgotten.
    TooManyExecutors,
    /// Too many slots for one executor.
    TooManySlots {
        /// Number of slots declared.
        given: u32,
    },
    /// The request names no executor.
    NoExecutor,
    /// The request names too many executors.
    RequestTooWide {
        /// Number of executors named.
        given: usize,
    },
    /// The name of an executor is empty, too long, or has a control character.
    BadName,
}

// === impl ExecuteRefused ===

impl fmt::Display for ExecuteRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "all slots are in use",
            Self::Gone => "the reservation no longer exists: reserve again",
            Self::Conflict => "this id and attempt belong to a different request",
            Self::Cancelled => "this attempt was cancelled before it arrived",
        })
    }
}

impl std::error::Error for ExecuteRefused {}

// === impl ReserveRefused ===

impl fmt::Display for ReserveRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "all slots are in use",
            Self::Started => "this attempt has already started",
            Self::Cancelled => "this attempt was cancelled before it arrived",
        })
    }
}

impl std::error::Error for ReserveRefused {}

// === impl LedgerRefused ===

impl LedgerRefused {
    /// True if a retry may succeed.
    #[must_use]
    pub const fn is_temporary(self) -> bool {
        matches!(self, Self::QueueFull | Self::TooManyExecutors)
    }
}

impl fmt::Display for LedgerRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::QueueFull => {
                let (waiters, entries) = (limits::WAITERS_MAX, limits::QUEUE_ENTRIES_MAX);
                write!(
                    f,
                    "the queue for slots is full ({waiters} waiters or {entries} entries): retry later"
                )
            }
            Self::TooManyExecutors => {
                write!(f, "at most {} executors can be known", limits::EXECUTORS_MAX)
            }
            Self::TooManySlots { given } => {
                let max = limits::SLOTS_MAX;
                write!(f, "an executor has at most {max} slots, not {given}")
            }
            Self::NoExecutor => f.write_str("the request names no executor: name at least one"),
            Self::RequestTooWide { given } => {
                let max = limits::REQUEST_EXECUTORS_MAX;
                write!(f, "a request names at most {max} executors, not {given}")
            }
            Self::BadName => {
                let max = limits::NAME_BYTES_MAX;
                write!(f, "an executor's name has 1 … {max} bytes and no control character")
            }
        }
    }
}

impl std::error::Error for LedgerRefused {}
