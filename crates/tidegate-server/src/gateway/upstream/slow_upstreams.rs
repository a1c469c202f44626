use super::Fleet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tidegate::outbox::DestinationSlow;
use tokio::time::{MissedTickBehavior, interval};

/// Often enough to see a burst, rarely enough to cost nothing.
const PERIOD: Duration = Duration::from_millis(100);

/// The alert that upstreams are in overflow or saturated: how many are, and how often it was raised.
#[derive(Debug, Default)]
pub struct SlowUpstreams {
    holding: AtomicUsize,
    raised: AtomicU64,
}

/// Checks every outbox and the age of every report, as long as the gateway runs.
pub async fn watch_upstreams(fleet: Arc<Fleet>, slow: Arc<SlowUpstreams>) {
    let mut was = vec![false; fleet.all().len()];
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        slow.observe(&fleet, &mut was);
        let (monitor, silent) = (fleet.monitor(), fleet.monitor().tick(fleet.monitor().now()));
        let needed = || monitor.thresholds().iter().any(|(_, thresholds)| !thresholds.are_off());
        if !silent.is_empty() && needed() {
            for upstream in silent {
                tracing::warn!(upstream = upstream.name(), "the load report has expired");
            }
        }
    }
}

// === impl SlowDestinations ===

impl SlowUpstreams {
    /// Upstreams for which the alert is active.
    pub fn holding(&self) -> usize {
        self.holding.load(Ordering::Relaxed)
    }

    /// Activations of the alert.
    pub fn raised(&self) -> u64 {
        self.raised.load(Ordering::Relaxed)
    }

    fn observe(&self, fleet: &Fleet, was: &mut [bool]) {
        let mut holding = 0;
        for (upstream, was) in fleet.all().iter().zip(was) {
            let alert = DestinationSlow::of(&upstream.outbox(0));
            let name = DestinationSlow::NAME;
            match (&alert, *was) {
                (Some(alert), false) => {
                    self.raised.fetch_add(1, Ordering::Relaxed);
                    tracing::warn!(alert = name, upstream = upstream.name(), "{alert}");
                }
                (None, true) => {
                    tracing::info!(alert = name, upstream = upstream.name(), "alert cleared");
                }
                _ => {}
            }
            *was = alert.is_some();
            holding += usize::from(*was);
        }
        self.holding.store(holding, Ordering::Relaxed);
    }
}
