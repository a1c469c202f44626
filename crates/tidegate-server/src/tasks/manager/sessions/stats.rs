use super::hub::WorkerHub;
use crate::tasks::session::{BufferMetrics, WorkerStats};
use serde::Serialize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidegate::progress::Progress;
use tidegate::signal::{
    BackpressureLevel, BackpressureSignal, LevelConfig, LevelConfigError, Offer, StatsBuffer,
    StatsBufferTotals,
};
use tidegate::task::ExecutionKey;
use tidegate::{InFlightTracker, OwnedPermit, PriorityLoadStats, Role, Sharing};
use tokio::sync::Notify;

/// Entries that the consumer takes at once.
const TAKE_MAX: usize = 256;

/// Progress and statistics on their way from the sessions to the manager.
pub(super) struct Stats {
    buffer: Mutex<StatsBuffer<StatsKey, StatsEntry>>,
    changed: Notify,
    /// Admission of frames, with the limits of a manager: a frame is in flight until its updates are consumed.
    pub(super) tracker: Arc<InFlightTracker>,
}

/// Subject of an entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum StatsKey {
    /// Progress of an execution.
    Execution(ExecutionKey),
    /// Statistics of a worker.
    Worker(Box<str>),
    /// Metrics of a worker's buffers.
    Debug(Box<str>),
}

/// Newest value of a subject, with the permits of the frames that it came with.
pub(super) struct StatsEntry {
    value: StatsValue,
    permits: Vec<OwnedPermit>,
}

pub(super) enum StatsValue {
    Progress(Progress),
    Worker(WorkerStats),
    Debug(BufferMetrics),
}

/// State of the buffer, for views and metrics.
#[derive(Clone, Debug, Serialize)]
pub struct StatsView {
    /// Updates that wait for the manager.
    pub waiting: u64,
    /// Most updates that may wait.
    pub capacity: u64,
    /// Share of the capacity in use.
    pub fill: f64,
    /// Level that senders are told.
    pub level: BackpressureLevel,
    /// Totals.
    #[serde(flatten)]
    pub totals: StatsBufferTotals,
    /// Admission of frames.
    pub admission: PriorityLoadStats,
}

// === impl Stats ===

impl Stats {
    pub(super) fn new(updates_max: u64) -> Result<Self, LevelConfigError> {
        // A key needs an update: the bound of updates is one of keys too.
        let keys_max = usize::try_from(updates_max).unwrap_or(usize::MAX);
        Ok(Self {
            buffer: Mutex::new(StatsBuffer::new(updates_max, keys_max, LevelConfig::default())?),
            changed: Notify::new(),
            tracker: Arc::new(InFlightTracker::new(Role::Manager.limits(), Sharing::Strict)),
        })
    }

    fn lock(&self) -> MutexGuard<'_, StatsBuffer<StatsKey, StatsEntry>> {
        // No holder panics.
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records updates of one frame, which the first of them keeps in flight. Returns how many were refused.
    pub(super) fn record(
        &self,
        updates: impl IntoIterator<Item = (StatsKey, Offer, StatsValue)>,
        mut permit: Option<OwnedPermit>,
    ) -> u32 {
        let (mut refused, mut recorded) = (0, false);
        let mut buffer = self.lock();
        for (key, offer, value) in updates {
            let entry = StatsEntry { value, permits: permit.take().into_iter().collect() };
            match buffer.record(key, offer, entry, StatsEntry::merge) {
                Ok(()) => recorded = true,
                Err(back) => {
                    refused += 1;
                    permit = back.value.permits.into_iter().next();
                }
            }
        }
        drop(buffer);
        if recorded {
            self.changed.notify_one();
        }
        refused
    }

    pub(super) fn signal(&self) -> BackpressureSignal {
        self.lock().signal()
    }

    pub(super) fn view(&self) -> StatsView {
        let buffer = self.lock();
        StatsView {
            waiting: buffer.waiting(),
            capacity: buffer.capacity(),
            fill: buffer.fill(),
            level: buffer.level(),
            totals: buffer.totals(),
            admission: self.tracker.stats(),
        }
    }

    fn take(&self) -> Vec<(StatsKey, StatsEntry)> {
        self.lock().take(TAKE_MAX)
    }
}

// === impl StatsEntry ===

impl StatsEntry {
    fn merge(&mut self, newer: Self) {
        self.permits.extend(newer.permits);
        match (&mut self.value, newer.value) {
            (StatsValue::Progress(old), StatsValue::Progress(new)) => drop(old.merge(&new)),
            (old, new) => *old = new,
        }
    }
}

/// Hands progress to the manager's thread and statistics to their workers, for as long as both are there. A slow
/// manager stops it, and the buffer fills: that is the backpressure.
pub(super) async fn consume_forever(hub: Arc<WorkerHub>) {
    loop {
        let taken = hub.stats.take();
        if taken.is_empty() {
            hub.stats.changed.notified().await;
            continue;
        }
        let mut progress = Vec::new();
        for (key, entry) in taken {
            match (key, entry.value) {
                (StatsKey::Execution(key), StatsValue::Progress(value)) => {
                    progress.push((key, value, entry.permits));
                }
                (StatsKey::Worker(name), StatsValue::Worker(stats)) => {
                    if let Some(worker) = hub.find(&name) {
                        worker.set_stats(stats);
                    }
                }
                (StatsKey::Debug(name), StatsValue::Debug(debug)) => {
                    if let Some(worker) = hub.find(&name) {
                        worker.set_debug(debug);
                    }
                }
                _ => {}
            }
        }
        if progress.is_empty() {
            // Statistics alone: the connections of this thread come first, and then what is left.
            tokio::task::yield_now().await;
            continue;
        }
        let mut permits = Vec::new();
        let updates = progress.into_iter().map(|(key, value, held)| {
            permits.extend(held);
            (key, value)
        });
        if hub.outlet.progress.send(updates.collect()).await.is_err() {
            return;
        }
        permits.into_iter().for_each(OwnedPermit::success);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::manager::sessions::{HubSettings, session_channels};
    use tidegate::MessageClass;
    use tidegate::signal::Update;
    use tokio::time::{Duration, timeout};

    /// More statistics than the consumer takes at once, and nothing after them.
    #[tokio::test(start_paused = true)]
    async fn the_consumer_leaves_nothing_behind() {
        let settings = HubSettings { updates_max: 10_000, ..HubSettings::default() };
        let (outlet, _inlet) = session_channels();
        let hub = WorkerHub::new(settings, outlet).unwrap();
        let offer = Offer { class: MessageClass::Data, update: Update::Progress, batched: true };
        let stats = (0..3 * TAKE_MAX).map(|nth| {
            let key = StatsKey::Worker(format!("w{nth}").into());
            (key, offer, StatsValue::Worker(WorkerStats::default()))
        });
        assert_eq!(hub.stats.record(stats, None), 0);
        let consuming = consume_forever(Arc::clone(&hub));
        assert!(timeout(Duration::from_secs(1), consuming).await.is_err(), "it goes on");
        assert_eq!(hub.stats.view().waiting, 0);
    }
}
