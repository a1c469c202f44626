use serde::Serialize;
use std::fmt;

/// From this fill of a buffer on its senders slow down.
pub const THROTTLE_FILL: f64 = 0.70;

/// From this fill on they send merged updates only.
pub const BATCH_FILL: f64 = 0.85;

/// From this fill on they send nothing that can be spared.
pub const REJECT_FILL: f64 = 0.95;

/// How much a sender should hold back; a greater level asks for more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum BackpressureLevel {
    /// Send freely.
    #[default]
    None,
    /// Leave time between two sends.
    Throttle,
    /// Merge what can be merged, and send less often.
    Batch,
    /// Send only what can't be spared.
    Reject,
}

// === impl BackpressureLevel ===

impl BackpressureLevel {
    /// Every level, the most relaxed first.
    pub const ALL: [Self; 4] = [Self::None, Self::Throttle, Self::Batch, Self::Reject];

    /// The level of a buffer that is this full, 0 … 1, with no memory of what it was before.
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

    /// The name used in answers, labels and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Throttle => "THROTTLE",
            Self::Batch => "BATCH",
            Self::Reject => "REJECT",
        }
    }

    /// This level's place in an array.
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
