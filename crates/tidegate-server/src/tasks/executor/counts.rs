use std::collections::BTreeMap;
use tidegate::task::{EndReason, TaskOutcome};

/// Totals of an executor since its start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerCounts {
    /// Executions started.
    pub started: u64,
    /// Repeated execute requests, which got the first response.
    pub repeated: u64,
    /// Executions ended, by outcome and reason.
    pub ended: BTreeMap<(TaskOutcome, EndReason), u64>,
    /// Total run time of ended executions in microseconds.
    pub ran_us: u64,
    /// Executions and reservations refused, by reason.
    pub refused: BTreeMap<&'static str, u64>,
    /// Reservations granted.
    pub reserved: u64,
    /// Reservations that expired before their execution started.
    pub reservations_expired: u64,
    /// Executions stopped because their lease expired.
    pub leases_expired: u64,
}

// === impl WorkerCounts ===

impl WorkerCounts {
    /// Executions ended.
    #[must_use]
    pub fn ended_total(&self) -> u64 {
        self.ended.values().sum()
    }

    /// Requests refused because no slot was free.
    #[must_use]
    pub fn refused_full(&self) -> u64 {
        self.refused.get("full").copied().unwrap_or(0)
    }

    pub(super) fn refuse(&mut self, reason: &'static str) {
        *self.refused.entry(reason).or_default() += 1;
    }
}
