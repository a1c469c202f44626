use super::QueueState;
use crate::admission::Role;
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// Bounds, thresholds and delays of one destination's queue.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct QueueConfig {
    /// Messages in the primary, 1 … 1,000,000; 500 by default. The thresholds are shares of it.
    pub primary_size: usize,
    /// Messages in the overflow, 0 … 1,000,000; 100 by default.
    pub overflow_size: usize,
    /// Messages in the separate control lane, 1 … 1,000,000; 64 by default.
    pub control_size: usize,
    /// Fill of the primary at which the queue is throttled, above 0 and below `batch_fill`; 0.70 by default.
    pub throttle_fill: f64,
    /// Fill of the primary at which the queue is batching, below `overflow_fill`; 0.85 by default.
    pub batch_fill: f64,
    /// Fill of the primary at which the queue is overflowing, at most 1; 0.95 by default.
    pub overflow_fill: f64,
    /// Distance below its threshold at which a state is left, 0 or more and below `throttle_fill`; 0.05 by
    /// default.
    pub hysteresis: f64,
    /// Producer delay of each state.
    pub delays: QueueDelays,
}

/// Delay between two messages of a producer, by state. Healthy has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct QueueDelays {
    /// 50 ms by default; no delay is above one minute.
    pub throttled: Duration,
    /// 200 ms by default.
    pub batching: Duration,
    /// 100 ms by default: less than batching, because new messages are worth more than queued ones.
    pub overflow: Duration,
    /// 500 ms by default.
    pub saturated: Duration,
}

/// Error of a [`QueueConfig`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueueConfigError {
    /// A size is out of range.
    Size {
        /// Name of the field.
        field: &'static str,
        /// Value given.
        size: usize,
        /// Smallest valid value; the largest is 1,000,000 for each.
        min: usize,
    },
    /// The thresholds do not rise, or are not within 0 … 1.
    Thresholds {
        /// `throttle_fill`.
        throttle: f64,
        /// `batch_fill`.
        batch: f64,
        /// `overflow_fill`.
        overflow: f64,
    },
    /// The hysteresis is negative, or so great that a throttled queue could never be healthy again.
    Hysteresis {
        /// Value given.
        hysteresis: f64,
        /// Value of `throttle_fill`, the exclusive upper bound.
        throttle: f64,
    },
    /// A delay is longer than one minute.
    Delay {
        /// Name of the field.
        field: &'static str,
        /// Value given.
        delay: Duration,
    },
}

/// Largest bound: a queue of more than a million messages belongs in a log, not in memory.
const SIZE_MAX: usize = 1_000_000;

/// Longest delay: a refusal serves a producer better than a longer wait.
const DELAY_MAX: Duration = Duration::from_secs(60);

// === impl QueueConfig ===

impl QueueConfig {
    /// Checks the configuration.
    ///
    /// # Errors
    ///
    /// The first invalid value, with its valid range.
    pub fn validate(&self) -> Result<(), QueueConfigError> {
        self.validate_sizes()?;
        let Self { throttle_fill: throttle, batch_fill: batch, overflow_fill: overflow, .. } =
            *self;
        // Written so that a NaN is refused too.
        if !(0.0 < throttle && throttle < batch && batch < overflow && overflow <= 1.0) {
            return Err(QueueConfigError::Thresholds { throttle, batch, overflow });
        }
        let hysteresis = self.hysteresis;
        if !(0.0..throttle).contains(&hysteresis) {
            return Err(QueueConfigError::Hysteresis { hysteresis, throttle });
        }
        self.delays.validate()
    }

    fn validate_sizes(&self) -> Result<(), QueueConfigError> {
        let sizes = [
            ("primary_size", self.primary_size, 1),
            ("overflow_size", self.overflow_size, 0),
            ("control_size", self.control_size, 1),
        ];
        match sizes.into_iter().find(|(_, size, min)| !(*min..=SIZE_MAX).contains(size)) {
            Some((field, size, min)) => Err(QueueConfigError::Size { field, size, min }),
            None => Ok(()),
        }
    }

    /// Default configuration of a role: a primary of 1,000 for a gate, 500 for a manager, 250 for a worker.
    #[must_use]
    pub fn for_role(role: Role) -> Self {
        let primary_size = match role {
            Role::Gate => 1000,
            Role::Manager => 500,
            Role::Worker => 250,
        };
        Self { primary_size, ..Self::default() }
    }

    /// Messages in the primary and the overflow together.
    #[must_use]
    pub const fn bound(&self) -> usize {
        self.primary_size + self.overflow_size
    }
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self {
            primary_size: 500,
            overflow_size: 100,
            control_size: 64,
            throttle_fill: 0.70,
            batch_fill: 0.85,
            overflow_fill: 0.95,
            hysteresis: 0.05,
            delays: QueueDelays::default(),
        }
    }
}

// === impl QueueDelays ===

impl QueueDelays {
    /// Producer delay of this state.
    #[must_use]
    #[inline]
    pub const fn of(&self, state: QueueState) -> Duration {
        match state {
            QueueState::Healthy => Duration::ZERO,
            QueueState::Throttled => self.throttled,
            QueueState::Batching => self.batching,
            QueueState::Overflow => self.overflow,
            QueueState::Saturated => self.saturated,
        }
    }

    fn validate(&self) -> Result<(), QueueConfigError> {
        let delays = [
            ("throttled", self.throttled),
            ("batching", self.batching),
            ("overflow", self.overflow),
            ("saturated", self.saturated),
        ];
        match delays.into_iter().find(|(_, delay)| *delay > DELAY_MAX) {
            Some((field, delay)) => Err(QueueConfigError::Delay { field, delay }),
            None => Ok(()),
        }
    }
}

impl Default for QueueDelays {
    fn default() -> Self {
        Self {
            throttled: Duration::from_millis(50),
            batching: Duration::from_millis(200),
            overflow: Duration::from_millis(100),
            saturated: Duration::from_millis(500),
        }
    }
}

// === impl QueueConfigError ===

impl fmt::Display for QueueConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Size { field, size, min } => {
                write!(f, "{field} is {size}: set it to {min} … {SIZE_MAX}")
            }
            Self::Thresholds { throttle, batch, overflow } => write!(
                f,
                "the thresholds are {throttle}, {batch}, {overflow}: \
                 they have to rise, the first above 0 and the last at most 1"
            ),
            Self::Hysteresis { hysteresis, throttle } => write!(
                f,
                "hysteresis is {hysteresis}: set it to 0 or more, and below throttle_fill ({throttle})"
            ),
            Self::Delay { field, delay } => {
                write!(f, "the delay of {field} is {delay:?}: set it to {DELAY_MAX:?} or less")
            }
        }
    }
}

impl std::error::Error for QueueConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_design_and_valid() {
        let config = QueueConfig::default();
        assert_eq!((config.primary_size, config.overflow_size), (500, 100));
        let delays_ms = [
            QueueState::Healthy,
            QueueState::Throttled,
            QueueState::Batching,
            QueueState::Overflow,
            QueueState::Saturated,
        ]
        .map(|state| config.delays.of(state).as_millis());
        assert_eq!(delays_ms, [0, 50, 200, 100, 500]);
        assert_eq!(config.validate(), Ok(()));
        for (role, size) in [(Role::Gate, 1000), (Role::Manager, 500), (Role::Worker, 250)] {
            assert_eq!(QueueConfig::for_role(role).primary_size, size);
        }
    }

    #[test]
    fn each_error_is_named_with_what_it_should_be() {
        let good = QueueConfig::default();
        let minutes = QueueDelays { overflow: Duration::from_secs(61), ..good.delays };
        let errors = [
            (QueueConfig { primary_size: 0, ..good }, "primary_size is 0: set it to 1"),
            (QueueConfig { overflow_size: 2_000_000, ..good }, "overflow_size is 2000000"),
            (QueueConfig { control_size: 0, ..good }, "control_size is 0"),
            (QueueConfig { batch_fill: 0.70, ..good }, "they have to rise"),
            (QueueConfig { overflow_fill: 1.01, ..good }, "at most 1"),
            (QueueConfig { throttle_fill: f64::NAN, ..good }, "they have to rise"),
            (QueueConfig { hysteresis: 0.70, ..good }, "hysteresis is 0.7"),
            (QueueConfig { hysteresis: -0.01, ..good }, "0 or more"),
            (QueueConfig { hysteresis: f64::NAN, ..good }, "hysteresis is NaN"),
            (QueueConfig { delays: minutes, ..good }, "the delay of overflow is 61s"),
        ];
        for (config, expected) in errors {
            let error = config.validate().expect_err(expected).to_string();
            assert!(error.contains(expected), "{error:?} does not say {expected:?}");
        }
    }
}
