use super::{Arrival, Verdict};
use serde::Serialize;
use std::collections::BTreeMap;
use tidegate_core::admission::Reason;

/// The verdicts on the requests of a recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// All requests.
    pub all: Share,
    /// The requests of each priority.
    pub by_priority: BTreeMap<&'static str, Share>,
}

/// The verdicts on a group of requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Share {
    /// Requests in all.
    pub asked: u64,
    /// Admitted, and refused by nothing else.
    pub admitted: u64,
    /// Refused at the limit for all.
    pub global_limit: u64,
    /// Refused at the priority's own.
    pub priority_limit: u64,
    /// Refused by something else than admission, in the recording.
    pub others: u64,
    /// In flight at once, the most.
    pub in_flight_max: u64,
    /// In flight, on average over the time of the recording.
    pub in_flight_mean: f64,
}

/// Counts what is in flight, and for how long.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Level {
    now: u64,
    most: u64,
    /// Requests times microseconds.
    area: u128,
    since_us: u64,
}

// === impl Share ===

impl Share {
    pub(super) fn count(&mut self, verdict: Verdict) {
        self.asked += 1;
        match verdict {
            Verdict::Admitted => self.admitted += 1,
            Verdict::Refused(Reason::GlobalLimit) => self.global_limit += 1,
            Verdict::Refused(Reason::PriorityLimit) => self.priority_limit += 1,
            Verdict::Other(_) => self.others += 1,
        }
    }

    pub(super) fn level(&mut self, level: &Level, lasted_us: u64) {
        self.in_flight_max = level.most;
        self.in_flight_mean = level.area as f64 / lasted_us.max(1) as f64;
    }

    /// Returns the number of requests that admission refused.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.global_limit + self.priority_limit
    }
}

// === impl Level ===

impl Level {
    /// Counts one request more or less at this time of the recording.
    pub(super) fn step(&mut self, now_us: u64, up: bool) {
        self.pass(now_us);
        self.now = if up { self.now + 1 } else { self.now.saturating_sub(1) };
        self.most = self.most.max(self.now);
    }

    /// Time goes on.
    pub(super) fn pass(&mut self, now_us: u64) {
        let passed = now_us.saturating_sub(self.since_us);
        self.area += u128::from(passed) * u128::from(self.now);
        self.since_us = self.since_us.max(now_us);
    }
}

// === impl Arrival ===

impl Arrival {
    /// Returns `true` if it came after the recording began.
    pub(super) fn is_counted(&self) -> bool {
        self.at_us >= 0
    }

    /// Returns `true` if admission decided on it, and not a check before admission.
    pub(super) fn was_decided(&self) -> bool {
        !matches!((self.verdict, self.took_us), (Verdict::Other(_), None))
    }
}
