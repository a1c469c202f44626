use crate::admission::InFlightTracker;
use serde::{Deserialize, Serialize};

/// Requests in flight, by priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InFlight {
    /// Critical.
    pub critical: u64,
    /// High.
    pub high: u64,
    /// Normal.
    pub normal: u64,
    /// Low.
    pub low: u64,
}

// === impl InFlight ===

impl InFlight {
    /// Returns the requests that a tracker counts now.
    #[must_use]
    pub fn of(tracker: &InFlightTracker) -> Self {
        let stats = tracker.stats();
        Self {
            critical: stats.critical_in_flight,
            high: stats.high_in_flight,
            normal: stats.normal_in_flight,
            low: stats.low_in_flight,
        }
    }

    /// Returns the number of requests below Critical: those that are proxied.
    #[must_use]
    pub fn proxied(&self) -> u64 {
        self.high.saturating_add(self.normal).saturating_add(self.low)
    }
}
