use serde::Serialize;
use std::collections::BTreeMap;
use tidegate_core::admission::MessagePriority;

/// What came of a [`AdmissionScenario`](super::AdmissionScenario).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The seed it was run with.
    pub seed: u64,
    /// Virtual time, without the end in which the last messages are only finished.
    pub duration_s: f64,
    /// How often the tracker was asked.
    pub decisions: u64,
    /// By priority, most urgent first.
    pub by_priority: BTreeMap<MessagePriority, PriorityReport>,
}

/// What came of the messages of one priority.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PriorityReport {
    /// New messages, each once, however often it came back.
    pub offered: u64,
    /// Messages that got in, at whichever attempt.
    pub admitted: u64,
    /// Of those, the ones that got in at once.
    pub admitted_at_once: u64,
    /// Refusals by the limit that refused. A client that is refused twice is in here twice.
    pub refused: BTreeMap<&'static str, u64>,
    /// Messages done a second, within the duration.
    pub goodput_per_s: f64,
    /// What refused clients were told.
    pub advised_wait: Option<WaitQuantiles>,
    /// What they would be told for the priority's own limit at the very end.
    pub advice_at_end_ms: u64,
    /// Clients that have come back at least once.
    pub returned: u64,
    /// Of those, the ones that got in the first time that they did.
    pub admitted_at_first_return: u64,
    /// Clients that were told to come back after the end.
    pub waiting_at_end: u64,
    /// The most that were in flight at once.
    pub in_flight_max: u32,
}

/// How long clients were told to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WaitQuantiles {
    /// Half of them at most this.
    pub p50_ms: u64,
    /// 99 % of them at most this.
    pub p99_ms: u64,
    /// All of them at most this.
    pub max_ms: u64,
}

// === impl Report ===

impl Report {
    /// What came of this priority.
    ///
    /// # Panics
    ///
    /// Never for a report of [`run`](super::run), which has all four.
    #[must_use]
    pub fn of(&self, priority: MessagePriority) -> &PriorityReport {
        &self.by_priority[&priority]
    }
}

// === impl PriorityReport ===

impl PriorityReport {
    /// Refusals for any reason.
    #[must_use]
    pub fn refused_total(&self) -> u64 {
        self.refused.values().sum()
    }

    /// The share of new messages that got in at once; 1 when there were none.
    #[must_use]
    pub fn at_once_share(&self) -> f64 {
        share(self.admitted_at_once, self.offered)
    }

    /// The share of returning clients that got in the first time that they came back; 1 when there were none.
    #[must_use]
    pub fn first_return_share(&self) -> f64 {
        share(self.admitted_at_first_return, self.returned)
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}
