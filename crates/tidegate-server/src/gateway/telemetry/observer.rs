use crate::http::admission::{Admission, RetryBoard};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tidegate::admission::{Alert, RetryAdvisor};
use tidegate::{InFlightTracker, LoadState, PriorityLoadStats};
use tokio::time::{MissedTickBehavior, interval};

/// Often enough that advice follows a change of load well within a second.
const PERIOD: Duration = Duration::from_millis(100);

/// The active alerts, and how often each was raised.
#[derive(Debug, Default)]
pub struct AlertBoard {
    holds: [AtomicBool; Alert::NAMES.len()],
    raised: [AtomicU64; Alert::NAMES.len()],
}

/// Observes the tracker at intervals: computes retry advice, raises and clears alerts, logs load states.
#[derive(Debug)]
pub struct Observer {
    advisor: RetryAdvisor,
    warn_threshold: f64,
    state: LoadState,
    /// At most one line a second about a changing load state: under load it flickers.
    next_state_log: Duration,
}

/// Observes for as long as the gateway runs.
pub async fn observe_forever(
    mut observer: Observer,
    admission: Arc<Admission>,
    alerts: Arc<AlertBoard>,
) {
    let start = Instant::now();
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        observer.observe(start.elapsed(), admission.tracker(), admission.retry_board(), &alerts);
        admission.observe_shares(start.elapsed());
    }
}

// === impl AlertBoard ===

impl AlertBoard {
    /// The active alerts, in the order of [`Alert::NAMES`].
    pub fn holding(&self) -> [bool; Alert::NAMES.len()] {
        std::array::from_fn(|index| self.holds[index].load(Ordering::Relaxed))
    }

    /// Activations of each alert, in the order of [`Alert::NAMES`].
    pub fn raised(&self) -> [u64; Alert::NAMES.len()] {
        std::array::from_fn(|index| self.raised[index].load(Ordering::Relaxed))
    }

    fn update(&self, stats: &PriorityLoadStats, warn_threshold: f64) {
        let mut holds = [false; Alert::NAMES.len()];
        for alert in Alert::of(stats, warn_threshold) {
            holds[alert.index()] = true;
            if !self.holds[alert.index()].swap(true, Ordering::Relaxed) {
                self.raised[alert.index()].fetch_add(1, Ordering::Relaxed);
                log_raised(alert);
            }
        }
        for (index, held) in holds.into_iter().enumerate() {
            if !held && self.holds[index].swap(false, Ordering::Relaxed) {
                tracing::info!(alert = Alert::NAMES[index], "alert cleared");
            }
        }
    }
}

// === impl Observer ===

impl Observer {
    /// An observer that warns from this share of the global limit on.
    #[must_use]
    pub fn new(advisor: RetryAdvisor, warn_threshold: f64) -> Self {
        let (state, next_state_log) = (LoadState::Healthy, Duration::ZERO);
        Self { advisor, warn_threshold, state, next_state_log }
    }

    /// One look, at `now` since any fixed start.
    pub fn observe(
        &mut self,
        now: Duration,
        tracker: &InFlightTracker,
        board: &RetryBoard,
        alerts: &AlertBoard,
    ) {
        let stats = tracker.stats();
        self.advisor.observe(now, &stats);
        board.publish(&self.advisor);
        alerts.update(&stats, self.warn_threshold);
        self.log_state(now, tracker.load_state(), &stats);
    }

    fn log_state(&mut self, now: Duration, state: LoadState, stats: &PriorityLoadStats) {
        if state == self.state || now < self.next_state_log {
            return;
        }
        self.next_state_log = now + Duration::from_secs(1);
        tracing::info!(
            from = %self.state,
            to = %state,
            in_flight = stats.total_in_flight,
            high_shed = stats.high_shed,
            normal_shed = stats.normal_shed,
            low_shed = stats.low_shed,
            "load state changed",
        );
        self.state = state;
    }
}

fn log_raised(alert: Alert) {
    match alert {
        Alert::CriticalShed { shed } => tracing::error!(alert = alert.name(), shed, "{alert}"),
        Alert::HighNearLimit { in_flight, limit } | Alert::NearGlobalLimit { in_flight, limit } => {
            tracing::warn!(alert = alert.name(), in_flight, limit, "{alert}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate::admission::{Reason, RetryBounds};
    use tidegate::{MessagePriority, PriorityLimits, Refusal, Sharing};

    #[test]
    fn an_alert_is_raised_once_and_cleared_when_it_no_longer_holds() {
        let tracker = InFlightTracker::new(PriorityLimits::new(10, 5, 3, 2), Sharing::Strict);
        let advisor = RetryAdvisor::new();
        let (board, alerts) = (RetryBoard::new(RetryBounds::default()), AlertBoard::default());
        let mut observer = Observer::new(advisor, 0.8);
        let mut look = |ms| observer.observe(Duration::from_millis(ms), &tracker, &board, &alerts);

        let held: Vec<_> =
            (0..5).filter_map(|_| tracker.try_acquire(MessagePriority::High).ok()).collect();
        look(100);
        look(200);
        assert_eq!((alerts.holding(), alerts.raised()), ([false, true, false], [0, 1, 0]));
        drop(held);
        look(300);
        assert_eq!((alerts.holding(), alerts.raised()), ([false, false, false], [0, 1, 0]));
        let low = Refusal { priority: MessagePriority::Low, reason: Reason::PriorityLimit };
        assert!(board.advice(low) >= RetryBounds::default().min);
    }
}
