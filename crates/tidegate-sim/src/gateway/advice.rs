use crate::agenda::Time;
use std::time::Duration;
use tidegate_core::admission::{
    InFlightTracker, MessagePriority, Reason, Refusal, RetryAdvisor, RetryBounds, Spread,
};

/// What those are told whom an admission limit refuses: computed a few times a second, read on every refusal.
#[derive(Debug)]
pub(super) struct Advice {
    bounds: RetryBounds,
    advisor: RetryAdvisor,
    wait: [[Duration; 2]; 4],
    spread: Spread,
}

// === impl Advice ===

impl Advice {
    pub(super) fn new(bounds: RetryBounds) -> Self {
        let advisor = RetryAdvisor::new(bounds);
        let (wait, spread) = ([[bounds.min; 2]; 4], Spread::default());
        let mut advice = Self { bounds, advisor, wait, spread };
        advice.publish();
        advice
    }

    pub(super) fn observe(&mut self, now: Time, tracker: &InFlightTracker) {
        self.advisor.observe(Duration::from_nanos(now), &tracker.stats());
        self.publish();
    }

    /// When this one should come back, to the millisecond as it is told.
    pub(super) fn for_one(&self, refusal: Refusal) -> Duration {
        let wait = self.wait[refusal.priority.index()][refusal.reason.index()];
        told(self.bounds.spread(wait, self.spread.next()))
    }

    fn publish(&mut self) {
        for priority in MessagePriority::ALL {
            for reason in Reason::ALL {
                let wait = self.advisor.advise(Refusal { priority, reason });
                self.wait[priority.index()][reason.index()] = told(wait);
            }
        }
    }
}

/// As answers have it: whole milliseconds.
pub(super) fn told(wait: Duration) -> Duration {
    Duration::from_millis(wait.as_millis().max(1) as u64)
}
