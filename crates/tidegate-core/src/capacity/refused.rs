use super::ledger::SlotLedger;
use std::fmt;

/// An execution did not get a slot. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExecuteRefused {
    /// All slots are taken.
    Full,
    /// The reservation has run out, was given back, or never was.
    Gone,
    /// The key stands for something else already.
    Conflict,
    /// It was cancelled before it came.
    Cancelled,
}

/// A slot was not reserved. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReserveRefused {
    /// All slots are taken.
    Full,
    /// The execution has come already, and needs none.
    Started,
    /// It was cancelled before it came.
    Cancelled,
}

/// A ledger of slots did not do what was asked. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LedgerRefused {
    /// As many wait as may. It may work later.
    LineFull,
    /// As many executors are known as may be. It may work later: those that nobody declares are forgotten.
    TooManyExecutors,
    /// An executor can't have so many slots.
    TooManySlots {
        /// How many it was to have.
        given: u32,
    },
    /// The request names no executor.
    NoExecutor,
    /// The request names too many executors.
    RequestTooWide {
        /// How many it names.
        given: usize,
    },
    /// The name of an executor is empty, too long, or has a control character.
    BadName,
}

// === impl ExecuteRefused ===

impl fmt::Display for ExecuteRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "all slots are taken",
            Self::Gone => "the reservation is not there any more: reserve again",
            Self::Conflict => "this id and attempt stand for something else already",
            Self::Cancelled => "this attempt was cancelled before it came",
        })
    }
}

impl std::error::Error for ExecuteRefused {}

// === impl ReserveRefused ===

impl fmt::Display for ReserveRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "all slots are taken",
            Self::Started => "this attempt has been started already",
            Self::Cancelled => "this attempt was cancelled before it came",
        })
    }
}

impl std::error::Error for ReserveRefused {}

// === impl LedgerRefused ===

impl LedgerRefused {
    /// Whether trying again later may help.
    #[must_use]
    pub const fn is_temporary(self) -> bool {
        matches!(self, Self::LineFull | Self::TooManyExecutors)
    }
}

impl fmt::Display for LedgerRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LineFull => {
                let (waiters, places) = (SlotLedger::WAITERS_MAX, SlotLedger::STANDING_MAX);
                write!(f, "{waiters} wait for slots, or in {places} places: ask again later")
            }
            Self::TooManyExecutors => {
                write!(f, "{} executors are known, and no more can be", SlotLedger::EXECUTORS_MAX)
            }
            Self::TooManySlots { given } => {
                let max = SlotLedger::SLOTS_MAX;
                write!(f, "an executor has at most {max} slots, and not {given}")
            }
            Self::NoExecutor => f.write_str("the request names no executor: name at least one"),
            Self::RequestTooWide { given } => {
                let max = SlotLedger::REQUEST_EXECUTORS_MAX;
                write!(f, "a request names at most {max} executors, and not {given}")
            }
            Self::BadName => {
                let max = SlotLedger::NAME_BYTES_MAX;
                write!(f, "an executor's name has 1 … {max} bytes and no control character")
            }
        }
    }
}

impl std::error::Error for LedgerRefused {}
