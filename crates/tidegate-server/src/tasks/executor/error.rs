use std::time::Duration;
use tidegate::capacity::{ExecuteRefused, ReserveRefused};
use tidegate::task::{IdError, SpecError, runtime_hint};

/// An execution was not started. Nothing changed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ExecuteError {
    /// Invalid id of a task.
    #[error("eval_id: {0}")]
    Id(#[from] IdError),
    /// Attempt 0: attempts count from 1.
    #[error("attempt: 0 was given; attempts count from 1")]
    Attempt,
    /// Task outside of the limits.
    #[error("{0}")]
    Spec(#[from] SpecError),
    /// Runtime that this executor does not have.
    #[error("language: unknown runtime {given:?}{}", runtime_hint(given, known))]
    UnknownRuntime {
        /// Runtime requested.
        given: String,
        /// Runtimes available.
        known: Vec<String>,
    },
    /// Lease of 0, or longer than any execution.
    #[error("lease_ms: {given_ms} was given; expected 1 … {max_ms} ms")]
    Lease {
        /// Lease requested.
        given_ms: u64,
        /// Longest lease.
        max_ms: u64,
    },
    /// All slots are in use.
    #[error("Executor at capacity")]
    Full {
        /// Time until a slot may be free.
        retry_after: Duration,
    },
    /// Refused for another reason.
    #[error("{0}")]
    Refused(ExecuteRefused),
    /// The executor shuts down.
    #[error("the executor shuts down and accepts nothing more")]
    Draining {
        /// Time until it has ended.
        retry_after: Duration,
    },
}

/// A slot was not reserved. Nothing changed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReserveError {
    /// Invalid id of a task.
    #[error("eval_id: {0}")]
    Id(#[from] IdError),
    /// Attempt 0: attempts count from 1.
    #[error("attempt: 0 was given; attempts count from 1")]
    Attempt,
    /// Lifetime of a reservation out of range.
    #[error("ttl: {given} was given; expected more than 0 and at most {max_s} seconds")]
    Ttl {
        /// Lifetime requested.
        given: f64,
        /// Longest lifetime.
        max_s: u64,
    },
    /// All slots are in use.
    #[error("Executor at capacity")]
    Full {
        /// Time until a slot may be free.
        retry_after: Duration,
    },
    /// Refused for another reason.
    #[error("{0}")]
    Refused(ReserveRefused),
    /// The executor shuts down.
    #[error("the executor shuts down and accepts nothing more")]
    Draining {
        /// Time until it has ended.
        retry_after: Duration,
    },
}

/// A report of progress was not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgressRefused {
    /// The execution is unknown or forgotten.
    #[error("there is no such execution")]
    Unknown,
    /// The execution has ended.
    #[error("the execution has ended")]
    Ended,
}

// === impl ExecuteError ===

impl ExecuteError {
    /// Name of the error in responses, labels and logs.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Id(_) => "bad_id",
            Self::Attempt => "bad_attempt",
            Self::Spec(SpecError::Runtime { .. }) => "unknown_runtime",
            Self::Spec(SpecError::CodeEmpty) => "code_empty",
            Self::Spec(SpecError::CodeTooLarge { .. }) => "code_too_large",
            Self::Spec(SpecError::ExtrasTooLarge { .. }) => "extras_too_large",
            Self::Spec(SpecError::Timeout { .. }) => "bad_timeout",
            Self::Spec(SpecError::Retries { .. } | SpecError::InvalidText { .. }) => "bad_extras",
            Self::UnknownRuntime { .. } => "unknown_runtime",
            Self::Lease { .. } => "bad_lease",
            Self::Full { .. } | Self::Refused(ExecuteRefused::Full) => "full",
            Self::Refused(ExecuteRefused::Gone) => "reservation_gone",
            Self::Refused(ExecuteRefused::Conflict) => "conflict",
            Self::Refused(ExecuteRefused::Cancelled) => "cancelled",
            Self::Draining { .. } => "draining",
        }
    }

    /// Retry advice, where a retry can succeed.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Full { retry_after } | Self::Draining { retry_after } => Some(*retry_after),
            _ => None,
        }
    }
}

// === impl ReserveError ===

impl ReserveError {
    /// Name of the error in responses, labels and logs.
    #[must_use]
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Id(_) => "bad_id",
            Self::Attempt => "bad_attempt",
            Self::Ttl { .. } => "bad_ttl",
            Self::Full { .. } | Self::Refused(ReserveRefused::Full) => "full",
            Self::Refused(ReserveRefused::Started) => "started",
            Self::Refused(ReserveRefused::Cancelled) => "cancelled",
            Self::Draining { .. } => "draining",
        }
    }

    /// Retry advice, where a retry can succeed.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Full { retry_after } | Self::Draining { retry_after } => Some(*retry_after),
            _ => None,
        }
    }
}
