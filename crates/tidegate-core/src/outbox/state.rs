use crate::signal::BackpressureLevel;
use serde::Serialize;
use std::fmt;

/// Fill of a destination's queue; a greater state is a fuller queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum QueueState {
    /// There is room.
    #[default]
    Healthy,
    /// The primary is filling: producers should slow down.
    Throttled,
    /// The primary is filling fast: producers should merge what they can.
    Batching,
    /// The primary is nearly full, or the overflow is in use.
    Overflow,
    /// The overflow is full as well: from now on each new message causes a drop or a refusal.
    Saturated,
}

// === impl QueueState ===

impl QueueState {
    /// Every state, the emptiest first.
    pub const ALL: [Self; 5] =
        [Self::Healthy, Self::Throttled, Self::Batching, Self::Overflow, Self::Saturated];

    /// Name in snapshots, labels and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Healthy => "HEALTHY",
            Self::Throttled => "THROTTLED",
            Self::Batching => "BATCHING",
            Self::Overflow => "OVERFLOW",
            Self::Saturated => "SATURATED",
        }
    }

    /// Backpressure level for producers. An overflowing queue still accepts everything, so its level is that of a
    /// batching one; only a saturated queue asks for critical messages alone.
    #[must_use]
    #[inline]
    pub const fn level(self) -> BackpressureLevel {
        match self {
            Self::Healthy => BackpressureLevel::None,
            Self::Throttled => BackpressureLevel::Throttle,
            Self::Batching | Self::Overflow => BackpressureLevel::Batch,
            Self::Saturated => BackpressureLevel::Reject,
        }
    }

    /// Index into arrays over all states.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for QueueState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
