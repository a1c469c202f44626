use std::time::Duration;
use tidegate::capacity::{ExecuteRefused, ReserveRefused};
use tidegate::task::{IdError, SpecError};

/// An execution was not started. Nothing changed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ExecuteError {
    /// The id can't name a task.
    #[error("eval_id: {0}")]
    Id(#[from] IdError),
    /// Attempts count from 1.
    #[error("attempt: 0 was given; attempts count from 1")]
    Attempt,
    /// It can't be as asked.
    #[error("{0}")]
    Spec(#[from] SpecError),
    /// Nobody here runs that.
    #[error("language: {given:?} is not known here; there are: {}", known.join(", "))]
    UnknownRuntime {
        /// What was asked for.
        given: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The lease is 0, or longer than any execution.
    #[error("lease_ms: {given_ms} was given; expected is 1 … {max_ms} ms")]
    Lease {
        /// What was asked for.
        given_ms: u64,
        /// The longest there may be.
        max_ms: u64,
    },
    /// All slots are taken.
    #[error("Executor at capacity")]
    Full {
        /// When there may be one.
        retry_after: Duration,
    },
    /// It has no slot for another reason.
    #[error("{0}")]
    Refused(ExecuteRefused),
    /// The executor is about to end.
    #[error("the executor is about to end, and takes nothing more")]
    Draining {
        /// When it will have ended.
        retry_after: Duration,
    },
}

/// A slot was not reserved. Nothing changed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ReserveError {
    /// The id can't name a task.
    #[error("eval_id: {0}")]
    Id(#[from] IdError),
    /// Attempts count from 1.
    #[error("attempt: 0 was given; attempts count from 1")]
    Attempt,
    /// The time is not one for which a slot is kept.
    #[error("ttl: {given} was given; expected is more than 0 and at most {max_s} seconds")]
    Ttl {
        /// What was asked for.
        given: f64,
        /// The longest there may be.
        max_s: u64,
    },
    /// All slots are taken.
    #[error("Executor at capacity")]
    Full {
        /// When there may be one.
        retry_after: Duration,
    },
    /// There is no reservation for another reason.
    #[error("{0}")]
    Refused(ReserveRefused),
    /// The executor is about to end.
    #[error("the executor is about to end, and takes nothing more")]
    Draining {
        /// When it will have ended.
        retry_after: Duration,
    },
}

// === impl ExecuteError ===

impl ExecuteError {
    /// The name used in answers, labels and logs.
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
            Self::Spec(SpecError::Retries { .. } | SpecError::Unspeakable { .. }) => "bad_extras",
            Self::UnknownRuntime { .. } => "unknown_runtime",
            Self::Lease { .. } => "bad_lease",
            Self::Full { .. } | Self::Refused(ExecuteRefused::Full) => "full",
            Self::Refused(ExecuteRefused::Gone) => "reservation_gone",
            Self::Refused(ExecuteRefused::Conflict) => "conflict",
            Self::Refused(ExecuteRefused::Cancelled) => "cancelled",
            Self::Draining { .. } => "draining",
        }
    }

    /// When to come back, where that helps.
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
    /// The name used in answers, labels and logs.
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

    /// When to come back, where that helps.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Full { retry_after } | Self::Draining { retry_after } => Some(*retry_after),
            _ => None,
        }
    }
}
