use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// A broken invariant: a defect of the decisions that no report may hide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The invariant, in a few words.
    pub invariant: &'static str,
    /// The observation that breaks it.
    pub found: String,
    /// The virtual time.
    pub at: Duration,
    /// Events until then.
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
