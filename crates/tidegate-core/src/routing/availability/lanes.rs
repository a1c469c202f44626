use crate::admission::MessagePriority;
use crate::routing::load::Standing;
use crate::routing::thresholds::{BusyThresholds, Shares};

/// Priorities that are judged alike share a lane: Low, Normal, and High with Critical.
pub(super) const LANES: usize = 3;

/// The lane that is judged by the thresholds as they were set.
pub(super) const HIGHEST: usize = LANES - 1;

/// The thresholds of a model, and the part of them that each priority may use.
#[derive(Clone, Copy, Debug)]
pub struct LaneThresholds {
    by_lane: [BusyThresholds; LANES],
    are_off: bool,
}

/// The lane of a priority.
pub(super) fn lane(priority: MessagePriority) -> usize {
    match priority {
        MessagePriority::Low => 0,
        MessagePriority::Normal => 1,
        MessagePriority::High | MessagePriority::Critical => HIGHEST,
    }
}

// === impl LaneThresholds ===

impl LaneThresholds {
    /// Returns these thresholds at each priority's share of them.
    #[must_use]
    pub fn new(all: BusyThresholds, shares: Shares) -> Self {
        use MessagePriority::{High, Low, Normal};
        let by_lane = [Low, Normal, High].map(|priority| all.for_priority(priority, shares));
        Self { by_lane, are_off: all.are_off() }
    }

    /// Returns the thresholds as they were set.
    #[must_use]
    pub fn all(&self) -> BusyThresholds {
        self.by_lane[HIGHEST]
    }

    /// Returns the thresholds that a request of this priority is judged by.
    #[must_use]
    pub fn of(&self, priority: MessagePriority) -> &BusyThresholds {
        &self.by_lane[lane(priority)]
    }

    /// Judges an upstream by the thresholds of each lane.
    pub(super) fn standings(
        &self,
        standing: impl Fn(&BusyThresholds) -> Standing,
    ) -> [Standing; LANES] {
        if self.are_off {
            return [standing(&self.by_lane[HIGHEST]); LANES];
        }
        [0, 1, 2].map(|lane: usize| standing(&self.by_lane[lane]))
    }
}
