use super::PriorityLoadStats;
use super::limits::HIGH_ALERT_PERCENT;
use serde::Serialize;
use std::fmt;

/// Share of its limit from which High counts as under pressure.
pub const HIGH_ALERT_RATIO: f64 = HIGH_ALERT_PERCENT as f64 / 100.0;

/// Condition that an operator should know about now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "alert", rename_all = "snake_case")]
pub enum Alert {
    /// Critical messages were refused. This can't happen; if it does, the cluster's stability is at risk.
    CriticalShed {
        /// Refusals since the start.
        shed: u64,
    },
    /// High is at 90 % of its limit or more: dispatch may be delayed.
    HighNearLimit {
        /// High messages in flight.
        in_flight: u64,
        /// Limit of High.
        limit: u64,
    },
    /// All priorities together have passed the configured warning threshold.
    NearGlobalLimit {
        /// Messages in flight.
        in_flight: u64,
        /// The global limit.
        limit: u64,
    },
}

// === impl Alert ===

impl Alert {
    /// Names of all alerts, in the order of [`Alert::index`].
    pub const NAMES: [&'static str; 3] = ["critical_shed", "high_near_limit", "near_global_limit"];

    /// Alerts that are active for this snapshot.
    ///
    /// `warn_threshold` is a share of the global limit, 0 … 1.
    pub fn of(stats: &PriorityLoadStats, warn_threshold: f64) -> impl Iterator<Item = Self> {
        let critical =
            (stats.critical_shed > 0).then_some(Self::CriticalShed { shed: stats.critical_shed });
        let high = reaches(stats.high_in_flight, stats.high_limit, HIGH_ALERT_RATIO).then_some(
            Self::HighNearLimit { in_flight: stats.high_in_flight, limit: stats.high_limit },
        );
        let global = reaches(stats.total_in_flight, stats.global_limit, warn_threshold).then_some(
            Self::NearGlobalLimit { in_flight: stats.total_in_flight, limit: stats.global_limit },
        );
        [critical, high, global].into_iter().flatten()
    }

    /// Name in labels and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::NAMES[self.index()]
    }

    /// Index into arrays over all alerts.
    #[must_use]
    pub const fn index(self) -> usize {
        match self {
            Self::CriticalShed { .. } => 0,
            Self::HighNearLimit { .. } => 1,
            Self::NearGlobalLimit { .. } => 2,
        }
    }
}

impl fmt::Display for Alert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |in_flight: u64, limit: u64| in_flight * 100 / limit.max(1);
        match *self {
            Self::CriticalShed { shed } => {
                write!(f, "{shed} critical messages were shed: cluster stability is at risk")
            }
            Self::HighNearLimit { in_flight, limit } => {
                write!(
                    f,
                    "high is at {} % of its limit: dispatch may be delayed",
                    percent(in_flight, limit)
                )
            }
            Self::NearGlobalLimit { in_flight, limit } => {
                write!(
                    f,
                    "{in_flight} in flight, {} % of the global limit",
                    percent(in_flight, limit)
                )
            }
        }
    }
}

fn reaches(in_flight: u64, limit: u64, ratio: f64) -> bool {
    limit > 0 && in_flight as f64 >= limit as f64 * ratio
}

#[cfg(test)]
mod tests {
    use super::super::{InFlightTracker, MessagePriority, PriorityLimits, Sharing};
    use super::*;

    #[test]
    fn high_alerts_at_ninety_percent_and_stops_below() {
        let tracker = InFlightTracker::new(PriorityLimits::new(100, 10, 30, 20), Sharing::Strict);
        let mut held: Vec<_> =
            (0..8).filter_map(|_| tracker.try_acquire(MessagePriority::High).ok()).collect();
        assert_eq!(Alert::of(&tracker.stats(), 0.8).count(), 0);
        held.extend(tracker.try_acquire(MessagePriority::High));
        let alerts: Vec<_> = Alert::of(&tracker.stats(), 0.8).collect();
        assert_eq!(alerts, [Alert::HighNearLimit { in_flight: 9, limit: 10 }]);
        held.pop();
        assert_eq!(Alert::of(&tracker.stats(), 0.8).count(), 0, "no latch");
    }

    #[test]
    fn the_warning_threshold_looks_at_everything_in_flight() {
        let tracker = InFlightTracker::new(PriorityLimits::new(10, 10, 10, 10), Sharing::Strict);
        let _held: Vec<_> =
            (0..8).filter_map(|_| tracker.try_acquire(MessagePriority::Low).ok()).collect();
        let alerts: Vec<_> = Alert::of(&tracker.stats(), 0.8).collect();
        assert_eq!(alerts, [Alert::NearGlobalLimit { in_flight: 8, limit: 10 }]);
        assert_eq!(Alert::of(&tracker.stats(), 0.81).count(), 0);
    }
}
