use crate::admission::{RetryBounds, ReturnPace, ReturnSchedule};
use crate::flow::ServiceEstimator;
use crate::sync::{AtomicU64, Ordering};
use std::time::Duration;

/// Requests for some slots, those of one model or of one executor: how many are in flight, ended and were refused,
/// and when refused clients should return. Shared between threads without a lock.
#[derive(Debug)]
pub struct Demand {
    bounds: RetryBounds,
    in_flight: AtomicU64,
    ended: AtomicU64,
    served_us: AtomicU64,
    refused: AtomicU64,
    /// Requests in flight that began before the last refusal: their slots are awaited.
    awaited_ends: AtomicU64,
    /// Time of the last end, or of the first begin after nothing was in flight, in microseconds.
    changed_us: AtomicU64,
    /// Mean time of a request in its slot in microseconds; 0 while it is unknown.
    service_us: AtomicU64,
    returns: ReturnSchedule,
}

// === impl Demand ===

impl Demand {
    /// Creates the demand for slots that nobody asked for, with advice within these bounds.
    #[must_use]
    pub fn new(bounds: RetryBounds) -> Self {
        Self {
            bounds,
            in_flight: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            served_us: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            awaited_ends: AtomicU64::new(0),
            changed_us: AtomicU64::new(0),
            service_us: AtomicU64::new(0),
            returns: ReturnSchedule::default(),
        }
    }

    /// Replaces the bounds of the advice.
    pub fn set_bounds(&mut self, bounds: RetryBounds) {
        self.bounds = bounds;
    }

    /// Counts a reservation.
    pub fn begin(&self, now: Duration) {
        if self.in_flight.fetch_add(1, Ordering::Relaxed) == 0 {
            self.changed_us.store(micros(now), Ordering::Relaxed);
        }
    }

    /// Counts the end of a reservation, which was used for this time; `None` if it was not used.
    pub fn end(&self, now: Duration, served: Option<Duration>) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        if self.is_awaited() {
            let one_less = |ends: u64| ends.checked_sub(1);
            let _ = self.awaited_ends.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
        }
        self.changed_us.store(micros(now), Ordering::Relaxed);
        if let Some(served) = served {
            // An observer in between sees a time without its end, and the next observation makes up for it.
            self.served_us.fetch_add(micros(served), Ordering::Relaxed);
            self.ended.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a request that was refused because no slot was free, and returns the wait of its client.
    pub fn refuse(&self, now: Duration) -> Duration {
        self.awaited_ends.store(self.in_flight(), Ordering::Relaxed);
        self.refuse_with_slots(now)
    }

    /// Counts a request that was refused although a slot may be free, and returns the wait of its client.
    pub fn refuse_with_slots(&self, now: Duration) -> Duration {
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.returns.take(self.pace(now), self.bounds, now)
    }

    /// Returns the number of requests sent that have not ended.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Returns `true` if there was a refusal since the requests in flight began, so that more are wanted than
    /// there are slots, also while slots are free again: without a queue, all slots are taken for only half of the
    /// time at twice the capacity.
    #[must_use]
    pub fn is_awaited(&self) -> bool {
        self.awaited_ends.load(Ordering::Relaxed) > 0
    }

    /// Returns the number of requests refused so far.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Returns the wait that a client would be told if it were refused now.
    #[must_use]
    pub fn advice(&self, now: Duration) -> Duration {
        self.returns.peek(self.pace(now), self.bounds, now)
    }

    /// Updates the mean time of a request. Call it a few times a second or at every end, always with the same
    /// estimator.
    pub fn observe(&self, estimator: &mut ServiceEstimator, now: Duration) {
        let ended = self.ended.load(Ordering::Relaxed);
        let served = Duration::from_micros(self.served_us.load(Ordering::Relaxed));
        estimator.observe(now, ended, served);
        let service_us = estimator.service().map_or(0, |service| micros(service).max(1));
        self.service_us.store(service_us, Ordering::Relaxed);
    }

    fn pace(&self, now: Duration) -> ReturnPace {
        let service = match self.service_us.load(Ordering::Relaxed) {
            0 => None,
            us => Some(Duration::from_micros(us)),
        };
        let in_flight = self.in_flight();
        let silence = match in_flight {
            0 => Duration::ZERO,
            _ => now.saturating_sub(Duration::from_micros(self.changed_us.load(Ordering::Relaxed))),
        };
        ReturnPace::new(service, silence, in_flight)
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_counts_as_demand_until_the_requests_of_that_moment_have_ended() {
        let demand = Demand::new(RetryBounds::default());
        let now = Duration::from_secs(1);
        (0..3).for_each(|_| demand.begin(now));
        demand.refuse_with_slots(now);
        assert!(!demand.is_awaited(), "a slot may have been free");
        demand.refuse(now);
        let ends = std::iter::repeat_with(|| {
            let was_awaited = demand.is_awaited();
            demand.end(now, Some(now));
            demand.begin(now);
            was_awaited
        });
        assert_eq!(ends.take(5).collect::<Vec<_>>(), [true, true, true, false, false]);
        assert_eq!((demand.refused(), demand.in_flight()), (2, 3));
    }
}
