use super::BackpressureLevel;
use crate::admission::MessageClass;
use serde::{Deserialize, Serialize};

/// Backpressure signal that a receiver puts into every answer to a sender.
///
/// Valid for [`ttl_ms`](Self::ttl_ms) from its arrival: the signal of a silent receiver expires.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackpressureSignal {
    /// Backpressure level.
    pub level: BackpressureLevel,
    /// Delay before each send, in milliseconds.
    pub delay_ms: u32,
    /// Merge small updates, and send only whole batches.
    pub batch_only: bool,
    /// Do not send non-critical updates.
    pub drop_non_critical: bool,
    /// Lifetime of the signal, in milliseconds.
    pub ttl_ms: u32,
}

/// Kind of an update within the work it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// Intermediate update: a later one replaces it.
    Progress,
    /// Last update: a final result, or a cancellation. Never dropped.
    Final,
}

// === impl BackpressureSignal ===

impl BackpressureSignal {
    /// Level 0: requests nothing, and clears an earlier signal.
    pub const CLEAR: Self = Self {
        level: BackpressureLevel::None,
        delay_ms: 0,
        batch_only: false,
        drop_non_critical: false,
        ttl_ms: 0,
    };

    /// Combines two signals: the higher level, the longer delay, the longer lifetime.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        Self {
            level: self.level.max(other.level),
            delay_ms: self.delay_ms.max(other.delay_ms),
            batch_only: self.batch_only || other.batch_only,
            drop_non_critical: self.drop_non_critical || other.drop_non_critical,
            ttl_ms: self.ttl_ms.max(other.ttl_ms),
        }
    }

    /// True if a sender with this signal may drop an update. The sender then counts it and returns it to the
    /// caller.
    ///
    /// Only intermediate telemetry may be dropped; everything else waits.
    ///
    /// ```
    /// use tidegate_core::admission::MessageClass::{Data, Telemetry};
    /// use tidegate_core::signal::{LevelConfig, LevelGauge, Update};
    ///
    /// let mut gauge = LevelGauge::new(LevelConfig::default())?;
    /// gauge.observe(98, 100);
    /// let signal = gauge.signal();
    /// assert!(signal.may_drop(Telemetry, Update::Progress));
    /// assert!(!signal.may_drop(Telemetry, Update::Final));
    /// assert!(!signal.may_drop(Data, Update::Progress));
    /// # Ok::<(), tidegate_core::signal::LevelConfigError>(())
    /// ```
    #[must_use]
    pub fn may_drop(&self, class: MessageClass, update: Update) -> bool {
        self.drop_non_critical
            && class == MessageClass::Telemetry
            && update == Update::Progress
            && self.level == BackpressureLevel::Reject
    }

    /// True if a receiver with this signal accepts a batch of `updates` updates. Otherwise the receiver refuses
    /// the batch and repeats the signal.
    ///
    /// From BATCH on, a single update is refused; control and dispatch are always accepted.
    #[must_use]
    pub fn accepts(&self, class: MessageClass, updates: u64) -> bool {
        match class {
            MessageClass::Control | MessageClass::Dispatch => true,
            MessageClass::Data => !self.batch_only || updates > 1,
            MessageClass::Telemetry => !self.drop_non_critical && (!self.batch_only || updates > 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use MessageClass::{Control, Data, Dispatch, Telemetry};

    const CLASSES: [MessageClass; 4] = [Control, Dispatch, Data, Telemetry];

    fn at(level: BackpressureLevel) -> BackpressureSignal {
        BackpressureSignal {
            level,
            delay_ms: 1,
            batch_only: level >= BackpressureLevel::Batch,
            drop_non_critical: level >= BackpressureLevel::Reject,
            ttl_ms: 1,
        }
    }

    #[test]
    fn only_progress_of_telemetry_may_be_dropped_and_only_at_reject() {
        for level in BackpressureLevel::ALL {
            for class in CLASSES {
                let spared = class == Telemetry && level == BackpressureLevel::Reject;
                assert_eq!(
                    at(level).may_drop(class, Update::Progress),
                    spared,
                    "{level} {class:?}"
                );
                assert!(!at(level).may_drop(class, Update::Final), "{level} {class:?}");
            }
        }
    }

    #[test]
    fn a_receiver_refuses_from_batch_on_what_comes_alone() {
        for level in BackpressureLevel::ALL {
            for class in CLASSES {
                let urgent = matches!(class, Control | Dispatch);
                let rejected = class == Telemetry && level == BackpressureLevel::Reject;
                let alone = urgent || level < BackpressureLevel::Batch;
                assert_eq!(at(level).accepts(class, 1), alone, "{level} {class:?}");
                assert_eq!(at(level).accepts(class, 2), !rejected, "{level} {class:?}");
            }
        }
    }

    #[test]
    fn a_join_heeds_both() {
        let low =
            BackpressureSignal { delay_ms: 900, ttl_ms: 5, ..at(BackpressureLevel::Throttle) };
        let high = at(BackpressureLevel::Reject);
        let both = low.join(high);
        assert_eq!(both, high.join(low));
        assert_eq!((both.level, both.delay_ms, both.ttl_ms), (BackpressureLevel::Reject, 900, 5));
        assert!(both.batch_only && both.drop_non_critical);
        assert_eq!(high.join(BackpressureSignal::CLEAR), high);
        assert_eq!(BackpressureSignal::CLEAR, BackpressureSignal::default());
    }
}
