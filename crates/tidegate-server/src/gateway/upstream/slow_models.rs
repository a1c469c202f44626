use super::Fleet;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tidegate::outbox::{DestinationSlow, QueueState};
use tokio::time::{MissedTickBehavior, interval};

/// Often enough to see a burst, rarely enough to cost nothing.
const PERIOD: Duration = Duration::from_millis(100);

/// The alert that the queues of models are in overflow or saturated: how many are, and how often it was raised.
#[derive(Debug, Default)]
pub struct SlowModels {
    holding: AtomicUsize,
    raised: AtomicU64,
}

/// Checks every queue and the age of every report, as long as the gateway runs.
pub async fn watch_upstreams(fleet: Arc<Fleet>, slow: Arc<SlowModels>) {
    let mut was = BTreeMap::new();
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        slow.observe(&fleet, &mut was);
        fleet.all().iter().for_each(|upstream| upstream.log_flapping());
        let (monitor, silent) = (fleet.monitor(), fleet.monitor().tick(fleet.monitor().now()));
        let needed = || monitor.thresholds().iter().any(|(_, thresholds)| !thresholds.are_off());
        if !silent.is_empty() && needed() {
            for upstream in silent {
                tracing::warn!(upstream = upstream.name(), "the load report has expired");
            }
        }
    }
}

// === impl SlowModels ===

impl SlowModels {
    /// Models for which the alert is active.
    pub fn holding(&self) -> usize {
        self.holding.load(Ordering::Relaxed)
    }

    /// Activations of the alert.
    pub fn raised(&self) -> u64 {
        self.raised.load(Ordering::Relaxed)
    }

    /// Logs a change that lasts once: a queue that flaps is reported when it has been quiet for a while.
    fn observe(&self, fleet: &Fleet, alerts: &mut BTreeMap<String, SlowQueue>) {
        let models = fleet.monitor().models();
        alerts.retain(|name, _| models.iter().any(|model| model.model == *name));
        let mut holding = 0;
        for model in models {
            let slow = model.queue.state >= QueueState::Overflow;
            let alert = alerts.entry(model.model.clone()).or_default();
            self.raised.fetch_add(u64::from(slow && !alert.is_slow), Ordering::Relaxed);
            holding += usize::from(slow);
            let name = DestinationSlow::NAME;
            match alert.observe(slow) {
                Some(News::Slow) => {
                    let state = model.queue.state.name();
                    tracing::warn!(alert = name, model = model.model, state, "the queue is full");
                }
                Some(News::Quiet { times }) => {
                    tracing::info!(alert = name, model = model.model, times, "alert cleared");
                }
                None => {}
            }
        }
        self.holding.store(holding, Ordering::Relaxed);
    }
}

/// The alert of one model's queue.
#[derive(Debug, Default)]
struct SlowQueue {
    is_slow: bool,
    /// Times that it became slow since the log said that it is quiet.
    times: u64,
    /// Observations since it was slow.
    quiet: u32,
}

/// A change that the log tells.
#[derive(Debug, PartialEq, Eq)]
enum News {
    Slow,
    Quiet { times: u64 },
}

/// Observations without the alert after which it is over: 5 s. A queue under a sawtooth of load flaps faster.
const QUIET_AFTER: u32 = 50;

// === impl SlowQueue ===

impl SlowQueue {
    fn observe(&mut self, slow: bool) -> Option<News> {
        let became_slow = slow && !self.is_slow;
        self.is_slow = slow;
        self.times += u64::from(became_slow);
        self.quiet = if slow { 0 } else { self.quiet.saturating_add(1) };
        if became_slow && self.times == 1 {
            return Some(News::Slow);
        }
        if self.times > 0 && self.quiet == QUIET_AFTER {
            let times = std::mem::take(&mut self.times);
            return Some(News::Quiet { times });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_flaps_is_logged_once_and_summed_up() {
        let mut queue = SlowQueue::default();
        let mut news = Vec::new();
        for step in 0..400_u32 {
            let slow = step < 200 && step % 2 == 0;
            news.extend(queue.observe(slow).map(|news| (step, news)));
        }
        assert_eq!(news, [(0, News::Slow), (248, News::Quiet { times: 100 })]);
        assert_eq!(queue.observe(true), Some(News::Slow), "it can be raised again");
    }
}
