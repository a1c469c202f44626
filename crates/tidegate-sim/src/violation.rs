use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// Something that must never be, and was. A defect of the decisions: no report may hide it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// What must always hold, in a few words.
    pub invariant: &'static str,
    /// What was instead.
    pub found: String,
    /// When, in virtual time.
    pub at: Duration,
    /// How many events there were until then.
    pub events: u64,
}

// === impl Violation ===

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { invariant, found, at, events } = self;
        write!(f, "after {events} events, at {:.6} s: {invariant}: {found}", at.as_secs_f64())
    }
}

impl std::error::Error for Violation {}
