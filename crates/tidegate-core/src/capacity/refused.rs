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
