use super::drain::DrainAdvisor;
use crate::sync::{AtomicU64, Ordering};
use std::time::Duration;

/// Requests for one model: how many are in flight, ended and were refused, and the retry advice that follows
/// from it. Shared between threads without a lock.
#[derive(Debug)]
pub struct Demand {
    in_flight: AtomicU64,
    ended: AtomicU64,
    refused: AtomicU64,
    advice_us: AtomicU64,
}

// === impl Demand ===

impl Demand {
    /// Creates the demand for a model that nobody asked for, with this advice until there is a better one.
    #[must_use]
    pub fn new(advice: Duration) -> Self {
        Self {
            in_flight: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            advice_us: AtomicU64::new(micros(advice)),
        }
    }

    /// Counts a reservation.
    pub fn begin(&self) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the end of a reservation.
    pub fn end(&self) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that was refused because all upstreams are busy.
    pub fn count_refusal(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of requests sent that have not ended.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Returns the number of requests refused so far.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Returns the mean wait that refused clients are told.
    #[must_use]
    pub fn advice(&self) -> Duration {
        Duration::from_micros(self.advice_us.load(Ordering::Relaxed))
    }

    /// Updates the advice. Call it a few times a second, always with the same advisor.
    pub fn observe(&self, advisor: &mut DrainAdvisor, now: Duration) {
        let ended = self.ended.load(Ordering::Relaxed);
        advisor.observe(now, ended, self.refused(), self.in_flight());
        self.advice_us.store(micros(advisor.advise()), Ordering::Relaxed);
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
