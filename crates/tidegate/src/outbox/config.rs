use std::fmt;
use std::time::Duration;
use tidegate_core::outbox::{QueueConfig, QueueConfigError};
use tidegate_core::retry::{BudgetLimits, Safety};

/// Configuration of an [`OutgoingRequestManager`](super::OutgoingRequestManager): queues, timeouts and retries.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingConfig {
    /// The queue of each destination.
    pub queue: QueueConfig,
    /// Destinations at the same time, 1 … 100,000; 1,000 by default.
    pub max_destinations: usize,
    /// Longest duration of one attempt, more than 0; 10 s by default.
    pub attempt_timeout: Duration,
    /// Longest time from enqueueing to sending, more than 0; 60 s by default. A caller that
    /// waits is answered at most one attempt and one backoff later than that.
    pub message_timeout: Duration,
    /// Attempts for one message, the first included, 1 or more; 5 by default.
    pub attempts_max: u32,
    /// The longest wait after a first failure; doubled with each further one. 50 ms by default.
    pub backoff_base: Duration,
    /// The longest wait after any failure; 5 s by default.
    pub backoff_cap: Duration,
    /// Retry policy for a message that may have been delivered. [`Safety::Once`] by default: it is handed back
    /// instead.
    pub safety: Safety,
    /// Share of the sends of each destination that may be retries. A batch counts as one send.
    pub budget: BudgetLimits,
    /// Messages that the [`HandBack`](super::HandBack) holds, 1 … 1,000,000; 1,000 by default.
    pub hand_back_size: usize,
    /// Where the jitter comes from: the same seed gives the same waits. From the process by default.
    pub seed: Option<u64>,
}

/// Why a manager can't be made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OutgoingConfigError {
    /// The queue can't be made.
    Queue(QueueConfigError),
    /// A number is out of its range.
    Range {
        /// The field.
        field: &'static str,
        /// The valid range.
        range: &'static str,
    },
    /// There is no tokio runtime here to start senders on.
    NoRuntime,
}

// === impl OutgoingConfig ===

impl OutgoingConfig {
    /// Checks the ranges of all fields.
    ///
    /// # Errors
    ///
    /// The first thing that is wrong, and what it should be.
    pub fn validate(&self) -> Result<(), OutgoingConfigError> {
        self.queue.validate().map_err(OutgoingConfigError::Queue)?;
        let ranges = [
            ("max_destinations", (1..=100_000).contains(&self.max_destinations), "1 … 100,000"),
            ("attempt_timeout", !self.attempt_timeout.is_zero(), "more than 0"),
            ("message_timeout", !self.message_timeout.is_zero(), "more than 0"),
            ("attempts_max", self.attempts_max > 0, "1 or more"),
            ("hand_back_size", (1..=1_000_000).contains(&self.hand_back_size), "1 … 1,000,000"),
        ];
        match ranges.into_iter().find(|(_, holds, _)| !holds) {
            Some((field, _, range)) => Err(OutgoingConfigError::Range { field, range }),
            None => Ok(()),
        }
    }
}

impl Default for OutgoingConfig {
    fn default() -> Self {
        Self {
            queue: QueueConfig::default(),
            max_destinations: 1000,
            attempt_timeout: Duration::from_secs(10),
            message_timeout: Duration::from_secs(60),
            attempts_max: 5,
            backoff_base: Duration::from_millis(50),
            backoff_cap: Duration::from_secs(5),
            safety: Safety::Once,
            budget: BudgetLimits::default(),
            hand_back_size: 1000,
            seed: None,
        }
    }
}

// === impl OutgoingConfigError ===

impl fmt::Display for OutgoingConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queue(error) => error.fmt(f),
            Self::Range { field, range } => write!(f, "{field} is out of range: set it to {range}"),
            Self::NoRuntime => f.write_str("there is no tokio runtime here: make it inside one"),
        }
    }
}

impl std::error::Error for OutgoingConfigError {}
