use serde::{Deserialize, Serialize};
use std::fmt;

/// Fill of a buffer from which its senders slow down.
pub const THROTTLE_FILL: f64 = 0.70;

/// Fill from which senders send merged updates only.
pub const BATCH_FILL: f64 = 0.85;

/// Fill from which senders send critical updates only.
pub const REJECT_FILL: f64 = 0.95;

/// Backpressure level; a greater level demands more restraint.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "UPPERCASE")]
pub enum BackpressureLevel {
    /// No restriction.
    #[default]
    None,
    /// Delay between two sends.
    Throttle,
    /// Merge updates, and send less often.
    Batch,
    /// Send critical updates only.
    Reject,
}

// === impl BackpressureLevel ===

impl BackpressureLevel {
    /// Every level, the least restrictive first.
    pub const ALL: [Self; 4] = [Self::None, Self::Throttle, Self::Batch, Self::Reject];

    /// Level of a buffer by its fill, 0 … 1, without hysteresis.
    #[must_use]
    pub fn of_fill(fill: f64) -> Self {
        if fill >= REJECT_FILL {
            Self::Reject
        } else if fill >= BATCH_FILL {
            Self::Batch
        } else if fill >= THROTTLE_FILL {
            Self::Throttle
        } else {
            Self::None
        }
    }

    /// Name in responses, labels and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Throttle => "THROTTLE",
            Self::Batch => "BATCH",
            Self::Reject => "REJECT",
        }
    }

    /// Index into arrays over all levels.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for BackpressureLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_begin_at_their_thresholds() {
        let table = [
            (0.0, BackpressureLevel::None),
            (0.6999, BackpressureLevel::None),
            (0.70, BackpressureLevel::Throttle),
            (0.8499, BackpressureLevel::Throttle),
            (0.85, BackpressureLevel::Batch),
            (0.9499, BackpressureLevel::Batch),
            (0.95, BackpressureLevel::Reject),
            (1.0, BackpressureLevel::Reject),
        ];
        for (fill, level) in table {
            assert_eq!(BackpressureLevel::of_fill(fill), level, "{fill}");
        }
    }

    #[test]
    fn names_and_places_follow_the_order() {
        let names = BackpressureLevel::ALL.map(BackpressureLevel::name);
        assert_eq!(names, ["NONE", "THROTTLE", "BATCH", "REJECT"]);
        for (place, level) in BackpressureLevel::ALL.into_iter().enumerate() {
            assert_eq!(level.index(), place);
        }
        assert!(BackpressureLevel::ALL.is_sorted());
    }
}
