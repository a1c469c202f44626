use super::{Lanes, MessagePriority, Outcome, PriorityLimits, Reason};
use crate::sync::{AtomicU64, Ordering};
use serde::Serialize;

/// Snapshot of admission by priority: in flight, admitted and refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)] // The names say it; they are the ones that dashboards of this design use.
pub struct PriorityLoadStats {
    pub critical_in_flight: u64,
    pub high_in_flight: u64,
    pub normal_in_flight: u64,
    pub low_in_flight: u64,
    pub total_in_flight: u64,

    pub critical_acquired: u64,
    pub high_acquired: u64,
    pub normal_acquired: u64,
    pub low_acquired: u64,

    /// Stays 0. Any other value is a defect, and an alert.
    pub critical_shed: u64,
    pub high_shed: u64,
    pub normal_shed: u64,
    pub low_shed: u64,

    pub global_limit: u64,
    pub high_limit: u64,
    pub normal_limit: u64,
    pub low_limit: u64,
    pub critical_reserve: u64,

    /// Refusals by priority and limit.
    pub shed_by_reason: [ReasonTotals; 4],
    /// Ended permits by priority and outcome.
    pub finished: [OutcomeTotals; 4],
}

/// Refusals by limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct ReasonTotals {
    pub global_limit: u64,
    pub priority_limit: u64,
}

/// Ended permits by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct OutcomeTotals {
    pub success: u64,
    pub ignored: u64,
    pub dropped: u64,
}

/// Counters of ended permits.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Ends {
    success: [AtomicU64; 4],
    ignored: [AtomicU64; 4],
    dropped: [AtomicU64; 4],
}

/// Counters of the snapshot, without the ended permits.
///
/// Acquisitions are not counted on the way in: they are the sum of finished and in flight, which saves one
/// contended write per message. A permit frees its slot first and counts its end second, and a snapshot reads the
/// ends first and the lanes second, so the sum can lag behind but never run ahead. `reported` keeps it monotonic,
/// as a counter must be.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Totals {
    shed: [[AtomicU64; 2]; 4],
    reported: [AtomicU64; 4],
}

// === impl PriorityLoadStats ===

impl PriorityLoadStats {
    /// Messages of a priority in flight.
    #[must_use]
    pub fn in_flight(&self, priority: MessagePriority) -> u64 {
        match priority {
            MessagePriority::Critical => self.critical_in_flight,
            MessagePriority::High => self.high_in_flight,
            MessagePriority::Normal => self.normal_in_flight,
            MessagePriority::Low => self.low_in_flight,
        }
    }

    /// Most messages of a priority in flight; for Critical its reserve.
    #[must_use]
    pub fn limit(&self, priority: MessagePriority) -> u64 {
        match priority {
            MessagePriority::Critical => self.critical_reserve,
            MessagePriority::High => self.high_limit,
            MessagePriority::Normal => self.normal_limit,
            MessagePriority::Low => self.low_limit,
        }
    }

    /// Messages of a priority admitted since the start.
    #[must_use]
    pub fn acquired(&self, priority: MessagePriority) -> u64 {
        match priority {
            MessagePriority::Critical => self.critical_acquired,
            MessagePriority::High => self.high_acquired,
            MessagePriority::Normal => self.normal_acquired,
            MessagePriority::Low => self.low_acquired,
        }
    }

    /// Messages of a priority refused since the start.
    #[must_use]
    pub fn shed(&self, priority: MessagePriority) -> u64 {
        match priority {
            MessagePriority::Critical => self.critical_shed,
            MessagePriority::High => self.high_shed,
            MessagePriority::Normal => self.normal_shed,
            MessagePriority::Low => self.low_shed,
        }
    }
}

// === impl ReasonTotals ===

impl ReasonTotals {
    /// Refusals for this reason.
    #[must_use]
    pub fn of(&self, reason: Reason) -> u64 {
        match reason {
            Reason::GlobalLimit => self.global_limit,
            Reason::PriorityLimit => self.priority_limit,
        }
    }

    /// Refusals for any reason.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.global_limit + self.priority_limit
    }
}

// === impl OutcomeTotals ===

impl OutcomeTotals {
    /// Permits that ended with this outcome.
    #[must_use]
    pub fn of(&self, outcome: Outcome) -> u64 {
        match outcome {
            Outcome::Success => self.success,
            Outcome::Ignored => self.ignored,
            Outcome::Dropped => self.dropped,
        }
    }

    /// Permits that ended with any outcome.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.success + self.ignored + self.dropped
    }
}

// === impl Ends ===

impl Ends {
    pub(super) fn new() -> Self {
        Self { success: zeros(), ignored: zeros(), dropped: zeros() }
    }

    #[inline]
    pub(super) fn count(&self, priority: MessagePriority, outcome: Outcome) {
        let lanes = match outcome {
            Outcome::Success => &self.success,
            Outcome::Ignored => &self.ignored,
            Outcome::Dropped => &self.dropped,
        };
        lanes[priority.index()].fetch_add(1, Ordering::Release);
    }

    pub(super) fn totals(&self) -> [OutcomeTotals; 4] {
        std::array::from_fn(|lane| OutcomeTotals {
            success: self.success[lane].load(Ordering::Acquire),
            ignored: self.ignored[lane].load(Ordering::Acquire),
            dropped: self.dropped[lane].load(Ordering::Acquire),
        })
    }
}

fn zeros() -> [AtomicU64; 4] {
    std::array::from_fn(|_| AtomicU64::new(0))
}

// === impl Totals ===

impl Totals {
    pub(super) fn new() -> Self {
        Self {
            shed: std::array::from_fn(|_| std::array::from_fn(|_| AtomicU64::new(0))),
            reported: zeros(),
        }
    }

    #[inline]
    pub(super) fn count_refusal(&self, priority: MessagePriority, reason: Reason) {
        self.shed[priority.index()][reason.index()].fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn snapshot(
        &self,
        finished: [OutcomeTotals; 4],
        lanes: Lanes,
        critical_spill: u64,
        limits: &PriorityLimits,
    ) -> PriorityLoadStats {
        let in_flight = MessagePriority::ALL.map(|priority| match priority {
            MessagePriority::Critical => u64::from(lanes.of(priority)) + critical_spill,
            _ => u64::from(lanes.of(priority)),
        });
        let acquired: [u64; 4] = std::array::from_fn(|lane| {
            let seen = finished[lane].total() + in_flight[lane];
            self.reported[lane].fetch_max(seen, Ordering::AcqRel).max(seen)
        });
        let shed_by_reason = self.shed_by_reason();
        let shed = shed_by_reason.map(|totals| totals.total());
        PriorityLoadStats {
            critical_in_flight: in_flight[0],
            high_in_flight: in_flight[1],
            normal_in_flight: in_flight[2],
            low_in_flight: in_flight[3],
            total_in_flight: in_flight.iter().sum(),
            critical_acquired: acquired[0],
            high_acquired: acquired[1],
            normal_acquired: acquired[2],
            low_acquired: acquired[3],
            critical_shed: shed[0],
            high_shed: shed[1],
            normal_shed: shed[2],
            low_shed: shed[3],
            global_limit: u64::from(limits.global_limit),
            high_limit: u64::from(limits.of(MessagePriority::High)),
            normal_limit: u64::from(limits.of(MessagePriority::Normal)),
            low_limit: u64::from(limits.of(MessagePriority::Low)),
            critical_reserve: u64::from(limits.critical_reserve),
            shed_by_reason,
            finished,
        }
    }

    fn shed_by_reason(&self) -> [ReasonTotals; 4] {
        std::array::from_fn(|lane| {
            let of = |reason: Reason| self.shed[lane][reason.index()].load(Ordering::Relaxed);
            ReasonTotals {
                global_limit: of(Reason::GlobalLimit),
                priority_limit: of(Reason::PriorityLimit),
            }
        })
    }
}
