use crate::http::{Histogram, HistogramSnapshot};
use crate::tasks::execution::CapacityReport;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegate::MessagePriority;
use tidegate::task::{EndReason, TaskOutcome};

/// Counters, histograms and gauges of a manager, for `/metrics` and `/v1/stats`.
#[derive(Debug, Default)]
pub struct ManagerMeters {
    submitted: [AtomicU64; 4],
    ended: [[AtomicU64; EndReason::ALL.len()]; 3],
    sent: AtomicU64,
    refused: AtomicU64,
    retried_failed: AtomicU64,
    retried_lost: AtomicU64,
    abandoned: AtomicU64,
    queued: Histogram,
    slot_time: Histogram,
    gauges: Mutex<Arc<ManagerGauges>>,
}

/// Gauges of a manager at its last probe of executors.
#[derive(Clone, Debug, Default)]
pub struct ManagerGauges {
    /// Queued tasks, by priority.
    pub waiting: [u64; 4],
    /// Tasks that run on an executor.
    pub running: u64,
    /// Time in the queue of the oldest queued task.
    pub oldest_queued: Duration,
    /// Memory of tasks that are not over, in bytes.
    pub bytes: u64,
    /// Every executor.
    pub executors: Vec<ExecutorGauge>,
}

/// Gauges of one executor.
#[derive(Clone, Debug)]
pub struct ExecutorGauge {
    /// Name of the executor.
    pub name: String,
    /// URL; empty for the executor of this process.
    pub url: String,
    /// The executor answers.
    pub up: bool,
    /// Last capacity report.
    pub report: Option<CapacityReport>,
}

/// Cause of a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryCause {
    /// The attempt failed.
    Failed,
    /// The attempt was lost with its executor.
    Lost,
}

/// Counters and histograms at one moment.
#[derive(Clone, Debug, Default)]
pub struct MeterSnapshot {
    /// Tasks submitted, by priority.
    pub submitted: [u64; 4],
    /// Tasks ended, by outcome and reason; without zeros.
    pub ended: Vec<(TaskOutcome, EndReason, u64)>,
    /// Attempts sent to executors.
    pub sent: u64,
    /// Attempts and reservations that a full executor refused.
    pub refused: u64,
    /// Retries after a failure.
    pub retried_failed: u64,
    /// Retries after the loss of an executor.
    pub retried_lost: u64,
    /// Attempts whose task another manager has changed.
    pub abandoned: u64,
    /// Time from the submission to the acceptance by an executor.
    pub queued: HistogramSnapshot,
    /// Time that attempts occupied their slots.
    pub slot_time: HistogramSnapshot,
}

const OUTCOMES: [TaskOutcome; 3] =
    [TaskOutcome::Succeeded, TaskOutcome::Failed, TaskOutcome::Cancelled];

// === impl ManagerMeters ===

impl ManagerMeters {
    pub(in crate::tasks::manager) fn submitted(&self, priority: MessagePriority) {
        add(&self.submitted[priority as usize]);
    }

    pub(in crate::tasks::manager) fn ended(&self, outcome: TaskOutcome, reason: EndReason) {
        let at = EndReason::ALL.iter().position(|known| *known == reason);
        let row = OUTCOMES.iter().position(|known| *known == outcome);
        if let (Some(at), Some(row)) = (at, row) {
            add(&self.ended[row][at]);
        }
    }

    pub(in crate::tasks::manager) fn sent(&self) {
        add(&self.sent);
    }

    pub(in crate::tasks::manager) fn refused(&self) {
        add(&self.refused);
    }

    pub(in crate::tasks::manager) fn retried(&self, cause: RetryCause) {
        add(match cause {
            RetryCause::Failed => &self.retried_failed,
            RetryCause::Lost => &self.retried_lost,
        });
    }

    pub(in crate::tasks::manager) fn abandoned(&self) {
        add(&self.abandoned);
    }

    pub(in crate::tasks::manager) fn queued(&self, wait: Duration) {
        self.queued.record(wait);
    }

    pub(in crate::tasks::manager) fn slot_freed(&self, slot_time: Duration) {
        self.slot_time.record(slot_time);
    }

    pub(in crate::tasks::manager) fn set_gauges(&self, gauges: ManagerGauges) {
        *self.gauges.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(gauges);
    }

    /// The gauges.
    #[must_use]
    pub fn gauges(&self) -> Arc<ManagerGauges> {
        Arc::clone(&self.gauges.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The counters and histograms now.
    #[must_use]
    pub fn snapshot(&self) -> MeterSnapshot {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let snapshot = |histogram: &Histogram| {
            let mut snapshot = HistogramSnapshot::default();
            histogram.add_to(&mut snapshot);
            snapshot
        };
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
            queued: snapshot(&self.queued),
            slot_time: snapshot(&self.slot_time),
        }
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
