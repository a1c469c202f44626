use serde::Serialize;
use std::fmt;

/// What one stage may hold from now on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Grant {
    /// The window: slots reserved for the stage.
    pub window: u64,
    /// The credits of its channel, at most the window.
    pub credits: u64,
    /// The byte bound of its channel. All five are never above the budget, unless more than that is held already.
    pub bytes: u64,
    /// Why the window is what it is.
    pub cause: Cause,
}

/// Why a window was moved, or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Nothing asks for a change.
    #[default]
    Hold,
    /// A sender is held up or soon will be, and the stage is fast enough for more.
    Increase,
    /// The window was too full. Only `Law::Seed` shrinks for that.
    DecreaseOccupancy,
    /// p99 of the service time rose above twice its baseline.
    DecreaseLatency,
    /// The window holds more than the stage does in the time that an item may wait.
    DecreaseLittle,
    /// More of it was reserved than was used.
    Idle,
    /// Nothing leaves this stage, or the one after it.
    Stall,
    /// Something left after a stall.
    Restore,
    /// The memory of all stages together is short.
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

    /// The name used in labels and logs.
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

    /// Whether it is one of those that push back on senders because of congestion.
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
