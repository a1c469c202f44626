use super::{BackpressureLevel, BackpressureSignal, LevelConfig, LevelConfigError};

/// Backpressure level of one buffer, with hysteresis.
///
/// The fill is items waiting / capacity, not a rate or an age, so it falls as soon as the consumer takes an item:
/// no level outlasts its cause. A level is entered at its threshold and left
/// [`hysteresis`](LevelConfig::hysteresis) below, so that a buffer at a threshold does not send a different signal
/// with every answer.
///
/// ```
/// use tidegate_core::signal::{BackpressureLevel, LevelConfig, LevelGauge};
///
/// let mut gauge = LevelGauge::new(LevelConfig::default())?;
/// assert_eq!(gauge.observe(86, 100), BackpressureLevel::Batch);
/// assert_eq!(gauge.observe(81, 100), BackpressureLevel::Batch, "left below 80");
/// assert_eq!(gauge.observe(79, 100), BackpressureLevel::Throttle);
/// assert_eq!(gauge.signal().delay_ms, 50);
/// # Ok::<(), tidegate_core::signal::LevelConfigError>(())
/// ```
#[derive(Clone, Debug)]
pub struct LevelGauge {
    config: LevelConfig,
    level: BackpressureLevel,
}

// === impl LevelGauge ===

impl LevelGauge {
    /// Creates the gauge of an empty buffer.
    ///
    /// # Errors
    ///
    /// If the configuration is not [valid](LevelConfig::validate).
    pub fn new(config: LevelConfig) -> Result<Self, LevelConfigError> {
        config.validate()?;
        Ok(Self { config, level: BackpressureLevel::None })
    }

    /// Observes a buffer with `waiting` items of `capacity`. The capacity may change between calls. A buffer
    /// without items is empty, whatever its capacity.
    pub fn observe(&mut self, waiting: u64, capacity: u64) -> BackpressureLevel {
        let fill = match (waiting, capacity) {
            (0, _) => 0.0,
            (_, 0) => 1.0,
            _ => waiting as f64 / capacity as f64,
        };
        self.observe_fill(fill)
    }

    /// Observes a buffer, or the fullest of several, by its fill. NaN counts as full.
    pub fn observe_fill(&mut self, fill: f64) -> BackpressureLevel {
        let fill = if fill.is_nan() { 1.0 } else { fill };
        let before = self.level;
        let holds = |level: &BackpressureLevel| {
            let enter = self.config.fill_of(*level);
            let leave = enter - self.config.hysteresis;
            at_least(fill, enter) || (*level <= before && at_least(fill, leave))
        };
        self.level = BackpressureLevel::ALL.into_iter().rev().find(holds).unwrap_or_default();
        self.level
    }

    /// Level at the last observation.
    #[must_use]
    pub fn level(&self) -> BackpressureLevel {
        self.level
    }

    /// Signal for an answer sent now.
    #[must_use]
    pub fn signal(&self) -> BackpressureSignal {
        self.signal_of(self.level)
    }

    /// Signal of a level.
    #[must_use]
    pub fn signal_of(&self, level: BackpressureLevel) -> BackpressureSignal {
        BackpressureSignal {
            level,
            delay_ms: self.config.delays.of(level),
            batch_only: level >= BackpressureLevel::Batch,
            drop_non_critical: level >= BackpressureLevel::Reject,
            ttl_ms: self.config.ttl_ms,
        }
    }

    /// Configuration of the gauge.
    #[must_use]
    pub fn config(&self) -> &LevelConfig {
        &self.config
    }
}

/// Tolerates an error of 1e-9: 0.7 − 0.05 has no exact binary form, and 65 of 100 must count as 0.65.
fn at_least(fill: f64, threshold: f64) -> bool {
    fill >= threshold - 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;
    use BackpressureLevel::{Batch, None, Reject, Throttle};
    use proptest::prelude::*;

    fn gauge() -> LevelGauge {
        LevelGauge::new(LevelConfig::default()).unwrap()
    }

    fn levels(waiting: &[u64]) -> Vec<BackpressureLevel> {
        let mut gauge = gauge();
        waiting.iter().map(|waiting| gauge.observe(*waiting, 1_000)).collect()
    }

    #[test]
    fn levels_are_entered_at_their_thresholds() {
        assert_eq!(
            levels(&[0, 699, 700, 849, 850, 949, 950, 1_000, 5_000]),
            [None, None, Throttle, Throttle, Batch, Batch, Reject, Reject, Reject]
        );
    }

    #[test]
    fn levels_are_left_five_points_below_where_they_were_entered() {
        assert_eq!(
            levels(&[1_000, 950, 900, 899, 850, 800, 799, 700, 650, 649, 0]),
            [Reject, Reject, Reject, Batch, Batch, Batch, Throttle, Throttle, Throttle, None, None]
        );
    }

    #[test]
    fn a_level_that_was_not_entered_does_not_hold() {
        assert_eq!(levels(&[690, 660]), [None, None]);
        assert_eq!(levels(&[840, 810]), [Throttle, Throttle]);
    }

    /// Others' receivers took nothing out at the highest level, and so never left it.
    #[test]
    fn a_buffer_that_is_drained_at_reject_is_clear_again() {
        assert_eq!(levels(&[1_000, 0]), [Reject, None]);
    }

    #[test]
    fn the_window_may_move_under_what_waits() {
        let mut gauge = gauge();
        assert_eq!(gauge.observe(2_000, 131_072), None);
        assert_eq!(gauge.observe(2_000, 1_024), Reject);
        assert_eq!(gauge.observe(2_000, 4_096), None);
        assert_eq!((gauge.observe(1, 0), gauge.observe(0, 0)), (Reject, None));
        assert_eq!((gauge.observe_fill(f64::NAN), gauge.observe_fill(-1.0)), (Reject, None));
    }

    #[test]
    fn what_a_level_asks_for_rises_with_it() {
        let gauge = gauge();
        let asked = BackpressureLevel::ALL.map(|level| {
            let signal = gauge.signal_of(level);
            (signal.delay_ms, signal.batch_only, signal.drop_non_critical, signal.ttl_ms)
        });
        assert_eq!(
            asked,
            [
                (0, false, false, 5_000),
                (50, false, false, 5_000),
                (200, true, false, 5_000),
                (500, true, true, 5_000)
            ]
        );
    }

    proptest! {
        /// For any history, the level is within the hysteresis of the level of the fill alone.
        #[test]
        fn the_past_moves_a_level_by_its_hysteresis_at_most(
            fills in prop::collection::vec(0.0..1.1_f64, 1..50),
        ) {
            let mut gauge = gauge();
            for fill in fills {
                let level = gauge.observe_fill(fill);
                prop_assert!(level >= BackpressureLevel::of_fill(fill), "{fill}: {level}");
                prop_assert!(level <= BackpressureLevel::of_fill(fill + 0.05 + 1e-6), "{fill}: {level}");
            }
        }
    }
}
