use crate::telemetry::{Histogram, HistogramSnapshot};
use crate::worker::CapacityReport;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegate::MessagePriority;
use tidegate::task::{EndReason, Outcome};

/// What a manager counts, for `/metrics` and `/v1/stats`.
#[derive(Debug, Default)]
pub struct ManagerMeters {
    submitted: [AtomicU64; 4],
    ended: [[AtomicU64; EndReason::ALL.len()]; 3],
    /// Attempts that were sent to executors.
    sent: AtomicU64,
    /// Of these, how many were refused because the executor was full.
    refused: AtomicU64,
    /// Attempts after a failure.
    retried_failed: AtomicU64,
    /// Attempts after a loss.
    retried_lost: AtomicU64,
    /// Words about an attempt that was not the latest any more.
    abandoned: AtomicU64,
    queued: Histogram,
    gauges: Mutex<Arc<ManagerGauges>>,
}

/// How things stand, a moment ago.
#[derive(Clone, Debug, Default)]
pub struct ManagerGauges {
    /// Tasks that wait, by priority.
    pub waiting: [u64; 4],
    /// Tasks that an executor has.
    pub running: u64,
    /// How long the one has waited that has waited longest.
    pub oldest_queued: Duration,
    /// What the tasks that are not over hold in memory.
    pub bytes: u64,
    /// How long tasks hold their slots, on average.
    pub held: Option<Duration>,
    /// Every executor.
    pub executors: Vec<ExecutorGauge>,
}

/// One executor, a moment ago.
#[derive(Clone, Debug)]
pub struct ExecutorGauge {
    /// Its name.
    pub name: String,
    /// Where it is.
    pub url: String,
    /// Whether it answers.
    pub up: bool,
    /// What it said last.
    pub report: Option<CapacityReport>,
}

/// Why an attempt was repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeated {
    /// It failed by itself.
    Failed,
    /// Its executor was lost.
    Lost,
}

/// The counters at one moment.
#[derive(Clone, Debug, Default)]
pub struct MeterSnapshot {
    /// Tasks submitted, by priority.
    pub submitted: [u64; 4],
    /// Tasks that ended, by outcome and reason; only those that there are.
    pub ended: Vec<(Outcome, EndReason, u64)>,
    /// Attempts that were sent to executors.
    pub sent: u64,
    /// Of these, how many were refused because the executor was full.
    pub refused: u64,
    /// Attempts after a failure.
    pub retried_failed: u64,
    /// Attempts after a loss.
    pub retried_lost: u64,
    /// Attempts that another manager has taken over.
    pub abandoned: u64,
    /// How long tasks waited until an executor accepted them.
    pub queued: HistogramSnapshot,
}

const OUTCOMES: [Outcome; 3] = [Outcome::Succeeded, Outcome::Failed, Outcome::Cancelled];

// === impl ManagerMeters ===

impl ManagerMeters {
    pub(super) fn submitted(&self, priority: MessagePriority) {
        add(&self.submitted[priority as usize]);
    }

    pub(super) fn ended(&self, outcome: Outcome, reason: EndReason) {
        let at = EndReason::ALL.iter().position(|it| *it == reason);
        let row = OUTCOMES.iter().position(|it| *it == outcome);
        if let (Some(at), Some(row)) = (at, row) {
            add(&self.ended[row][at]);
        }
    }

    pub(super) fn sent(&self) {
        add(&self.sent);
    }

    pub(super) fn refused(&self) {
        add(&self.refused);
    }

    pub(super) fn repeated(&self, why: Repeated) {
        add(match why {
            Repeated::Failed => &self.retried_failed,
            Repeated::Lost => &self.retried_lost,
        });
    }

    pub(super) fn abandoned(&self) {
        add(&self.abandoned);
    }

    pub(super) fn waited(&self, wait: Duration) {
        self.queued.record(wait);
    }

    pub(super) fn set_gauges(&self, gauges: ManagerGauges) {
        *self.gauges.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(gauges);
    }

    /// How things stand, a moment ago.
    #[must_use]
    pub fn gauges(&self) -> Arc<ManagerGauges> {
        Arc::clone(&self.gauges.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The counters now.
    #[must_use]
    pub fn snapshot(&self) -> MeterSnapshot {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let mut queued = HistogramSnapshot::default();
        self.queued.add_to(&mut queued);
        let mut ended = Vec::new();
        for (row, outcome) in self.ended.iter().zip(OUTCOMES) {
            for (count, reason) in row.iter().zip(EndReason::ALL) {
                let count = load(count);
                if count > 0 {
                    ended.push((outcome, reason, count));
                }
            }
        }
        MeterSnapshot {
            submitted: [0, 1, 2, 3].map(|at: usize| load(&self.submitted[at])),
            ended,
            sent: load(&self.sent),
            refused: load(&self.refused),
            retried_failed: load(&self.retried_failed),
            retried_lost: load(&self.retried_lost),
            abandoned: load(&self.abandoned),
            queued,
        }
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
