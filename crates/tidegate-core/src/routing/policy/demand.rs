use super::drain::DrainAdvisor;
use crate::admission::MessagePriority;
use crate::routing::thresholds::LastHighRequest;
use crate::sync::{AtomicU64, Ordering};
use std::time::Duration;

/// Requests for one model: how many are in flight, ended and were refused, when High asked last, and the retry
/// advice that follows from it. Shared between threads without a lock.
#[derive(Debug)]
pub struct Demand {
    /// Two threads that note High at once may lose one of two moments that are the same.
    high_asked: AtomicU64,
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
            high_asked: AtomicU64::new(LastHighRequest::default().into_word()),
            in_flight: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            advice_us: AtomicU64::new(micros(advice)),
        }
    }

    /// Notes a request, and returns the priority by whose share of the thresholds it is judged.
    pub fn judge(&self, priority: MessagePriority, now: Duration) -> MessagePriority {
        let before = self.high_asked.load(Ordering::Relaxed);
        let mut asked = LastHighRequest::from_word(before);
        let judged = asked.judge(priority, now);
        let after = asked.into_word();
        if after != before {
            self.high_asked.store(after, Ordering::Relaxed);
        }
        judged
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

    pub(super) fn count_refusal(&self) {
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
