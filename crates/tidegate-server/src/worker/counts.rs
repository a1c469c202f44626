use std::collections::BTreeMap;
use tidegate::task::{EndReason, Outcome};

/// What an executor has done since it started. All totals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerCounts {
    /// Executions that were started.
    pub started: u64,
    /// Executions that were asked for again, and got the first answer.
    pub repeated: u64,
    /// Executions that are over.
    pub ended: BTreeMap<(Outcome, EndReason), u64>,
    /// How long they ran in all, in microseconds.
    pub ran_us: u64,
    /// Executions and reservations that were refused, by reason.
    pub refused: BTreeMap<&'static str, u64>,
    /// Reservations that were made.
    pub reserved: u64,
    /// Reservations that ran out before their execution came.
    pub reservations_expired: u64,
    /// Executions of which nobody asked any more.
    pub leases_expired: u64,
}

// === impl WorkerCounts ===

impl WorkerCounts {
    /// Every execution that is over.
    #[must_use]
    pub fn ended_total(&self) -> u64 {
        self.ended.values().sum()
    }

    /// Those that found no slot.
    #[must_use]
    pub fn refused_full(&self) -> u64 {
        self.refused.get("full").copied().unwrap_or(0)
    }

    pub(super) fn refuse(&mut self, reason: &'static str) {
        *self.refused.entry(reason).or_default() += 1;
    }
}
