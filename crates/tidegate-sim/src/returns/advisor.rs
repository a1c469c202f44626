use crate::agenda::Time;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::admission::{
    InFlightTracker, MessagePriority, OwnedPermit, PriorityLimits, Reason, Refusal, RetryAdvisor,
    RetryBoard, RetryBounds, Sharing,
};
use tidegate_core::routing::{Demand, ServiceEstimator};

/// The server that refuses, and its way to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advisor {
    /// An executor at its slots: it observes every end.
    Executor,
    /// A gateway whose upstreams are at their limits: it observes ten times a second.
    Gateway,
    /// A gateway at an admission limit: ten times a second it sees the numbers in flight, but no times.
    Admission,
}

/// Retry advice as that server computes it, from the parts of core that it uses.
#[derive(Debug)]
pub(super) struct Advice {
    advisor: Advisor,
    demand: Demand,
    estimator: ServiceEstimator,
    tracker: Arc<InFlightTracker>,
    permits: Vec<OwnedPermit>,
    retry_advisor: RetryAdvisor,
    board: RetryBoard,
}

// === impl Advice ===

impl Advice {
    pub(super) fn new(advisor: Advisor, slots: u32) -> Self {
        let bounds = RetryBounds::default();
        let low = u16::try_from(slots).unwrap_or(u16::MAX);
        let limits = PriorityLimits { low, ..PriorityLimits::default() };
        Self {
            advisor,
            demand: Demand::new(bounds),
            estimator: ServiceEstimator::default(),
            tracker: Arc::new(InFlightTracker::new(limits, Sharing::Strict)),
            permits: Vec::new(),
            retry_advisor: RetryAdvisor::new(),
            board: RetryBoard::new(bounds),
        }
    }

    pub(super) fn began(&mut self, now: Time) {
        self.demand.begin(Duration::from_nanos(now));
        self.permits.extend(self.tracker.try_acquire_owned(MessagePriority::Low));
    }

    pub(super) fn ended(&mut self, now: Time, served: Duration) {
        let now = Duration::from_nanos(now);
        self.demand.end(now, Some(served));
        // Any of them: the tracker knows no times.
        self.permits.pop();
        if self.advisor == Advisor::Executor {
            self.demand.observe(&mut self.estimator, now);
        }
    }

    pub(super) fn refuse(&mut self, now: Time) -> Duration {
        let now = Duration::from_nanos(now);
        match self.advisor {
            Advisor::Executor | Advisor::Gateway => self.demand.refuse(now),
            Advisor::Admission => {
                let refusal =
                    Refusal { priority: MessagePriority::Low, reason: Reason::PriorityLimit };
                self.board.take(refusal, now)
            }
        }
    }

    pub(super) fn tick(&mut self, now: Time) {
        let now = Duration::from_nanos(now);
        match self.advisor {
            Advisor::Executor => {}
            Advisor::Gateway => self.demand.observe(&mut self.estimator, now),
            Advisor::Admission => {
                self.retry_advisor.observe(now, &self.tracker.stats());
                self.board.publish(&self.retry_advisor);
            }
        }
    }
}
