use std::time::Duration;

/// The half-life of an estimate without new answers, so that an upstream that was slow or refused is tried again.
const MEMORY: Duration = Duration::from_secs(10);

/// The least latency that a refusal counts as. Answers are rarely slower, and an upstream that refuses in 1 ms
/// must not look like the fastest.
const PENALTY: Duration = Duration::from_secs(1);

/// The latency of an upstream without answers: low enough to be tried soon, high enough not to be overloaded.
const UNKNOWN: Duration = Duration::from_millis(1);

/// An estimate of the time to the first byte of an upstream: rises at once, falls slowly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Latency {
    estimate_us: u64,
    at_us: u64,
}

/// The answer of an upstream to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The response began after this time.
    Began(Duration),
    /// A refusal, or no connection. A fast refusal does not count as low latency.
    Refused,
}

// === impl Latency ===

impl Latency {
    /// Records an answer at `now`.
    pub fn observe(&mut self, answer: Answer, now: Duration) {
        let known_us = self.estimate_at(now);
        let since_us = micros(now).saturating_sub(self.at_us);
        let seen_us = match answer {
            Answer::Began(after) => micros(after),
            // The requests that break off at once in an outage are one event: one penalty in its own time.
            Answer::Refused
                if self.estimate_us >= micros(PENALTY) && since_us < micros(PENALTY) =>
            {
                return;
            }
            Answer::Refused => micros(PENALTY).max(known_us.saturating_mul(2)),
        };
        let cap_us = micros(PENALTY) * 60;
        let estimate_us = if seen_us >= known_us {
            seen_us.min(cap_us)
        } else {
            // A faster answer lowers the estimate by a tenth of the difference.
            known_us - (known_us - seen_us).div_ceil(10)
        };
        *self = Self { estimate_us, at_us: micros(now) };
    }

    /// Returns the estimate at `now`, in microseconds.
    #[must_use]
    pub fn estimate_at(&self, now: Duration) -> u64 {
        let silence_us = micros(now).saturating_sub(self.at_us);
        let memory_us = micros(MEMORY);
        let kept = u128::from(self.estimate_us) * u128::from(memory_us)
            / u128::from(memory_us.saturating_add(silence_us));
        u64::try_from(kept).unwrap_or(u64::MAX).max(micros(UNKNOWN))
    }

    /// Returns the two fields, to be stored in atomics.
    #[must_use]
    pub fn into_words(self) -> [u64; 2] {
        [self.estimate_us, self.at_us]
    }

    /// Restores an estimate from [`into_words`](Self::into_words).
    #[must_use]
    pub fn from_words([estimate_us, at_us]: [u64; 2]) -> Self {
        Self { estimate_us, at_us }
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn an_upstream_that_refuses_fast_looks_slow_and_is_asked_again_later() {
        let (mut honest, mut refuser) = (Latency::default(), Latency::default());
        for second in 1..10 {
            honest.observe(Answer::Began(Duration::from_millis(200)), s(second));
            refuser.observe(Answer::Refused, s(second));
        }
        assert!(refuser.estimate_at(s(10)) > 10 * honest.estimate_at(s(10)));
        // It rises no further than a minute, and the silence of ten more is enough to be forgotten.
        assert!(refuser.estimate_at(s(10)) <= 60_000_000);
        assert!(refuser.estimate_at(s(6_000)) < 150_000, "{}", refuser.estimate_at(s(6_000)));
    }

    #[test]
    fn the_requests_that_break_off_in_one_outage_are_one_penalty() {
        let mut latency = Latency::default();
        for ms in 0..500 {
            latency.observe(Answer::Refused, s(10) + Duration::from_millis(ms));
        }
        assert_eq!(latency.estimate_at(s(10)), 1_000_000);
        latency.observe(Answer::Refused, s(11));
        assert!(latency.estimate_at(s(11)) > 1_800_000, "it still refuses a second later");
    }

    #[test]
    fn one_slow_answer_counts_at_once_and_fast_ones_make_up_for_it() {
        let mut latency = Latency::default();
        latency.observe(Answer::Began(s(2)), s(1));
        assert_eq!(latency.estimate_at(s(1)), 2_000_000);
        for _ in 0..60 {
            latency.observe(Answer::Began(Duration::from_millis(10)), s(1));
        }
        assert!(latency.estimate_at(s(1)) < 20_000, "{}", latency.estimate_at(s(1)));
    }
}
