use super::{BATCH_FILL, BackpressureLevel, REJECT_FILL, THROTTLE_FILL};
use std::fmt;

/// Longest delay of a signal: one minute.
pub const DELAY_MS_MAX: u32 = 60_000;

/// Longest lifetime of a signal: ten minutes.
pub const TTL_MS_MAX: u32 = 600_000;

/// Thresholds, delays and lifetime of backpressure levels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LevelConfig {
    /// Fill from which senders slow down. 0 … 1, default 0.70.
    pub throttle_fill: f64,
    /// Fill from which senders merge updates. Above `throttle_fill`, default 0.85.
    pub batch_fill: f64,
    /// Fill from which senders send critical updates only. Above `batch_fill`, at most 1, default 0.95.
    pub reject_fill: f64,
    /// Distance below its threshold at which a level is left. 0 … `throttle_fill`, default 0.05.
    pub hysteresis: f64,
    /// Delay before each send, by level.
    pub delays: LevelDelays,
    /// Lifetime of a signal without a successor, in milliseconds. 1 … 600,000 and at least twice the longest
    /// delay, so that the signal outlives the wait it causes; default 5,000.
    pub ttl_ms: u32,
}

/// Delay before each send by level, in milliseconds, each 0 … 60,000.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelDelays {
    /// At THROTTLE. Default 50.
    pub throttle_ms: u32,
    /// At BATCH. Default 200.
    pub batch_ms: u32,
    /// At REJECT: the interval between two probes. Default 500.
    pub reject_ms: u32,
}

/// Error of a [`LevelConfig`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LevelConfigError {
    /// The thresholds do not rise from above 0 to at most 1.
    Thresholds {
        /// `throttle_fill`.
        throttle: f64,
        /// `batch_fill`.
        batch: f64,
        /// `reject_fill`.
        reject: f64,
    },
    /// The hysteresis is negative, or not below `throttle_fill`.
    Hysteresis {
        /// Value given.
        hysteresis: f64,
        /// Value of `throttle_fill`.
        throttle: f64,
    },
    /// A delay is too long, or shorter than that of a lower level.
    Delays {
        /// Values given.
        delays: LevelDelays,
    },
    /// The lifetime is zero, too long, or shorter than twice the longest delay.
    Ttl {
        /// Value given, in milliseconds.
        ttl_ms: u32,
        /// Smallest valid value.
        min_ms: u32,
    },
}

// === impl LevelConfig ===

impl LevelConfig {
    /// Checks the configuration.
    ///
    /// # Errors
    ///
    /// The first invalid value, with its valid range.
    pub fn validate(&self) -> Result<(), LevelConfigError> {
        let Self { throttle_fill: throttle, batch_fill: batch, reject_fill: reject, .. } = *self;
        let rise = 0.0 < throttle && throttle < batch && batch < reject && reject <= 1.0;
        if !rise {
            return Err(LevelConfigError::Thresholds { throttle, batch, reject });
        }
        let hysteresis = self.hysteresis;
        if !(0.0..throttle).contains(&hysteresis) {
            return Err(LevelConfigError::Hysteresis { hysteresis, throttle });
        }
        self.delays.validate()?;
        let min_ms = self.delays.reject_ms.saturating_mul(2).max(1);
        if !(min_ms..=TTL_MS_MAX).contains(&self.ttl_ms) {
            return Err(LevelConfigError::Ttl { ttl_ms: self.ttl_ms, min_ms });
        }
        Ok(())
    }

    /// Fill at which a level begins.
    pub(super) fn fill_of(&self, level: BackpressureLevel) -> f64 {
        match level {
            BackpressureLevel::None => 0.0,
            BackpressureLevel::Throttle => self.throttle_fill,
            BackpressureLevel::Batch => self.batch_fill,
            BackpressureLevel::Reject => self.reject_fill,
        }
    }
}

impl Default for LevelConfig {
    fn default() -> Self {
        Self {
            throttle_fill: THROTTLE_FILL,
            batch_fill: BATCH_FILL,
            reject_fill: REJECT_FILL,
            hysteresis: 0.05,
            delays: LevelDelays::default(),
            ttl_ms: 5_000,
        }
    }
}

// === impl LevelDelays ===

impl LevelDelays {
    /// Delay of this level.
    #[must_use]
    pub const fn of(&self, level: BackpressureLevel) -> u32 {
        match level {
            BackpressureLevel::None => 0,
            BackpressureLevel::Throttle => self.throttle_ms,
            BackpressureLevel::Batch => self.batch_ms,
            BackpressureLevel::Reject => self.reject_ms,
        }
    }

    fn validate(&self) -> Result<(), LevelConfigError> {
        let rise = self.throttle_ms <= self.batch_ms && self.batch_ms <= self.reject_ms;
        match rise && self.reject_ms <= DELAY_MS_MAX {
            true => Ok(()),
            false => Err(LevelConfigError::Delays { delays: *self }),
        }
    }
}

impl Default for LevelDelays {
    fn default() -> Self {
        Self { throttle_ms: 50, batch_ms: 200, reject_ms: 500 }
    }
}

// === impl LevelConfigError ===

impl fmt::Display for LevelConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Thresholds { throttle, batch, reject } => write!(
                f,
                "the thresholds are {throttle}, {batch}, {reject}: \
                 they have to rise, the first above 0 and the last at most 1"
            ),
            Self::Hysteresis { hysteresis, throttle } => write!(
                f,
                "hysteresis is {hysteresis}: set it to 0 or more, and below throttle_fill ({throttle})"
            ),
            Self::Delays { delays: LevelDelays { throttle_ms, batch_ms, reject_ms } } => write!(
                f,
                "the delays are {throttle_ms}, {batch_ms}, {reject_ms} ms: \
                 none may be shorter than the one before, nor longer than {DELAY_MS_MAX} ms"
            ),
            Self::Ttl { ttl_ms, min_ms } => {
                write!(f, "ttl_ms is {ttl_ms}: set it to {min_ms} … {TTL_MS_MAX}")
            }
        }
    }
}

impl std::error::Error for LevelConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_design_and_valid() {
        let config = LevelConfig::default();
        assert_eq!(config.validate(), Ok(()));
        let delays_ms = BackpressureLevel::ALL.map(|level| config.delays.of(level));
        assert_eq!(delays_ms, [0, 50, 200, 500]);
        let fills = BackpressureLevel::ALL.map(|level| config.fill_of(level));
        assert_eq!(fills, [0.0, 0.70, 0.85, 0.95]);
    }

    #[test]
    fn each_error_is_named_with_what_it_should_be() {
        let good = LevelConfig::default();
        let falling = LevelDelays { batch_ms: 40, ..good.delays };
        let long = LevelDelays { reject_ms: 60_001, ..good.delays };
        let errors = [
            (LevelConfig { batch_fill: 0.70, ..good }, "they have to rise"),
            (LevelConfig { reject_fill: 1.01, ..good }, "at most 1"),
            (LevelConfig { throttle_fill: f64::NAN, ..good }, "they have to rise"),
            (LevelConfig { hysteresis: 0.70, ..good }, "hysteresis is 0.7"),
            (LevelConfig { hysteresis: f64::NAN, ..good }, "hysteresis is NaN"),
            (LevelConfig { delays: falling, ..good }, "none may be shorter"),
            (LevelConfig { delays: long, ..good }, "nor longer than 60000 ms"),
            (LevelConfig { ttl_ms: 999, ..good }, "ttl_ms is 999: set it to 1000"),
            (LevelConfig { ttl_ms: 600_001, ..good }, "ttl_ms is 600001"),
        ];
        for (config, expected) in errors {
            let error = config.validate().expect_err(expected).to_string();
            assert!(error.contains(expected), "{error:?} does not say {expected:?}");
        }
    }
}
