use crate::tasks::session::{BufferMetrics, WorkerStats};
use serde::Serialize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidegate::progress::Progress;
use tidegate::signal::{
    BackpressureLevel, BackpressureSignal, LevelConfig, LevelConfigError, StatsBuffer,
    StatsBufferTotals, StatsOffer,
};
use tidegate::task::ExecutionKey;
use tidegate::{InFlightTracker, MessagePriority, OwnedPermit, PriorityLoadStats, Role, Sharing};
use tokio::sync::Notify;

/// Entries that the consumer takes at once.
pub(super) const TAKE_MAX: usize = 256;

/// Progress and statistics on their way from the sessions to the manager.
pub(super) struct Stats {
    buffer: Mutex<StatsBuffer<StatsKey, StatsEntry>>,
    pub(super) changed: Notify,
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
    pub(super) value: StatsValue,
    pub(super) permits: Vec<OwnedPermit>,
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
        updates: impl IntoIterator<Item = (StatsKey, StatsOffer, StatsValue)>,
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
        // What was not recorded is in flight no more.
        drop(permit);
        buffer.set_admission(self.admission());
        drop(buffer);
        if recorded {
            self.changed.notify_one();
        }
        refused
    }

    /// Share of the frames of data that may be in flight.
    fn admission(&self) -> f64 {
        let (lanes, limits) = (self.tracker.lanes(), self.tracker.limits());
        let share = |used: u32, limit: u16| f64::from(used) / f64::from(limit.max(1));
        share(lanes.of(MessagePriority::Normal), limits.normal)
            .max(share(lanes.total(), limits.global_limit))
    }

    /// Ends the permits of frames whose updates were consumed.
    pub(super) fn consumed(&self, permits: Vec<OwnedPermit>) {
        permits.into_iter().for_each(OwnedPermit::success);
        self.lock().set_admission(self.admission());
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

    /// Takes the entries that have waited longest.
    pub(super) fn take(&self) -> Vec<(StatsKey, StatsEntry)> {
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
