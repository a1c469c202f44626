use crate::http::admission::{Admission, RetryBoard};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tidegate::admission::{Alert, RetryAdvisor};
use tidegate::routing::{FlapLog, HeldChanges};
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
    /// Under load the state and the alerts flicker with each look.
    state_log: FlapLog,
    alert_logs: [FlapLog; Alert::NAMES.len()],
}

/// Change of an alert at one look.
#[derive(Clone, Copy, Debug)]
enum AlertChange {
    Raised(Alert),
    Cleared,
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

    /// Takes the alerts of one look; returns the change of each.
    fn update(
        &self,
        stats: &PriorityLoadStats,
        warn_threshold: f64,
    ) -> [Option<AlertChange>; Alert::NAMES.len()] {
        let mut now = [None; Alert::NAMES.len()];
        for alert in Alert::of(stats, warn_threshold) {
            now[alert.index()] = Some(alert);
        }
        std::array::from_fn(|index| {
            let held = self.holds[index].swap(now[index].is_some(), Ordering::Relaxed);
            match now[index] {
                Some(alert) if !held => {
                    self.raised[index].fetch_add(1, Ordering::Relaxed);
                    Some(AlertChange::Raised(alert))
                }
                None if held => Some(AlertChange::Cleared),
                _ => None,
            }
        })
    }
}

// === impl Observer ===

impl Observer {
    /// An observer that warns from this share of the global limit on.
    #[must_use]
    pub fn new(advisor: RetryAdvisor, warn_threshold: f64) -> Self {
        Self {
            advisor,
            warn_threshold,
            state: LoadState::Healthy,
            state_log: FlapLog::default(),
            alert_logs: Default::default(),
        }
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
        let changes = alerts.update(&stats, self.warn_threshold);
        self.log_alerts(now, changes, alerts);
        self.log_state(now, tracker.load_state(), &stats);
    }

    fn log_alerts(
        &mut self,
        now: Duration,
        changes: [Option<AlertChange>; Alert::NAMES.len()],
        alerts: &AlertBoard,
    ) {
        for (index, (log, change)) in self.alert_logs.iter_mut().zip(changes).enumerate() {
            match change {
                // A defect of the gateway itself: each is told.
                Some(AlertChange::Raised(alert @ Alert::CriticalShed { .. })) => log_raised(alert),
                Some(change) if log.change(now) => match change {
                    AlertChange::Raised(alert) => log_raised(alert),
                    AlertChange::Cleared => {
                        tracing::info!(alert = Alert::NAMES[index], "alert cleared");
                    }
                },
                _ => {}
            }
            if let Some(HeldChanges { changes, since }) = log.summary(now) {
                let seconds = now.saturating_sub(since).as_secs();
                let (alert, holds) = (Alert::NAMES[index], alerts.holding()[index]);
                tracing::warn!(alert, changes, seconds, holds, "alert is raised and cleared again");
            }
        }
    }

    fn log_state(&mut self, now: Duration, state: LoadState, stats: &PriorityLoadStats) {
        let from = std::mem::replace(&mut self.state, state);
        let PriorityLoadStats { total_in_flight, high_shed, normal_shed, low_shed, .. } = *stats;
        if from != state && self.state_log.change(now) {
            tracing::info!(
                %from,
                to = %state,
                in_flight = total_in_flight,
                high_shed,
                normal_shed,
                low_shed,
                "load state changed",
            );
        }
        if let Some(HeldChanges { changes, since }) = self.state_log.summary(now) {
            let seconds = now.saturating_sub(since).as_secs();
            tracing::info!(
                %state,
                changes,
                seconds,
                in_flight = total_in_flight,
                high_shed,
                normal_shed,
                low_shed,
                "load state changes again and again",
            );
        }
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
    use tracing::span::{Attributes, Id, Record};
    use tracing::{Event, Metadata, Subscriber};

    /// Counts the events of a thread.
    #[derive(Clone, Default)]
    struct EventCount(Arc<AtomicU64>);

    impl Subscriber for EventCount {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }

        fn new_span(&self, _: &Attributes<'_>) -> Id {
            Id::from_u64(1)
        }

        fn record(&self, _: &Id, _: &Record<'_>) {}

        fn record_follows_from(&self, _: &Id, _: &Id) {}

        fn event(&self, _: &Event<'_>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }

        fn enter(&self, _: &Id) {}

        fn exit(&self, _: &Id) {}
    }

    #[test]
    fn a_load_that_flickers_for_a_minute_is_told_a_few_times_and_summed_up() {
        let tracker = InFlightTracker::new(PriorityLimits::new(20, 5, 3, 2), Sharing::Strict);
        let (board, alerts) = (RetryBoard::new(RetryBounds::default()), AlertBoard::default());
        let mut observer = Observer::new(RetryAdvisor::new(), 0.8);
        let log = EventCount::default();
        let _log = tracing::subscriber::set_default(log.clone());
        for look in 0..600_u64 {
            let priorities = [MessagePriority::High, MessagePriority::Low];
            let held: Vec<_> = (0..10)
                .filter(|_| look % 2 == 0)
                .filter_map(|number| tracker.try_acquire(priorities[number % 2]).ok())
                .collect();
            observer.observe(Duration::from_millis(100 * look), &tracker, &board, &alerts);
            drop(held);
        }
        assert_eq!(alerts.raised(), [0, 300, 0]);
        // Four changes and five summaries of the alert, and as many of the load state.
        assert_eq!(log.0.load(Ordering::Relaxed), 18);
    }

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
