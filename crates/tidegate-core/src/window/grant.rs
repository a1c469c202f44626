use serde::Serialize;
use std::fmt;

/// Window, credits and bytes of one stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Grant {
    /// Window: slots reserved for the stage.
    pub window: u64,
    /// Credits of its channel, at most the window.
    pub credits: u64,
    /// Byte bound of its channel. The sum of all five never exceeds the budget, unless more is held already.
    pub bytes: u64,
    /// Cause of the last change.
    pub cause: Cause,
}

/// Cause of a window's change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// No change needed.
    #[default]
    Hold,
    /// A sender is held up or soon will be, and the stage is fast enough for more.
    Increase,
    /// The window was too full. Only `Law::Seed` shrinks for that.
    DecreaseOccupancy,
    /// p99 of the service time rose above twice its baseline.
    DecreaseLatency,
    /// The window holds more than the stage processes in the time that an item may wait.
    DecreaseLittle,
    /// More was reserved than used.
    Idle,
    /// Nothing leaves this stage, or the one after it.
    Stall,
    /// Items left again after a stall.
    Restore,
    /// The memory of all stages together is exhausted.
    Budget,
}

// === impl Cause ===

impl Cause {
    /// Every cause.
    pub const ALL: [Self; 9] = [
        Self::Hold,
        Self::Increase,
        Self::DecreaseOccupancy,
        Self::DecreaseLatency,
        Self::DecreaseLittle,
        Self::Idle,
        Self::Stall,
        Self::Restore,
        Self::Budget,
    ];

    /// Name in labels and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::Increase => "increase",
            Self::DecreaseOccupancy => "decrease_occupancy",
            Self::DecreaseLatency => "decrease_latency",
            Self::DecreaseLittle => "decrease_little",
            Self::Idle => "idle",
            Self::Stall => "stall",
            Self::Restore => "restore",
            Self::Budget => "budget",
        }
    }

    /// True for a decrease because of congestion.
    #[must_use]
    pub const fn is_decrease(self) -> bool {
        matches!(self, Self::DecreaseOccupancy | Self::DecreaseLatency | Self::DecreaseLittle)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
