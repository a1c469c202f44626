use std::time::Duration;

/// How long an estimate stands by itself. After this time without news half of it is forgotten, so that a worker
/// that was slow or refused is asked again.
const MEMORY: Duration = Duration::from_secs(10);

/// What a refusal counts as at least. Answers are rarely slower, and a worker that refuses in a millisecond must
/// not look like the fastest of all.
const PENALTY: Duration = Duration::from_secs(1);

/// Before anything is known, a worker is as good as one that answers in this time: soon tried, not swamped.
const UNKNOWN: Duration = Duration::from_millis(1);

/// How long a worker takes to begin an answer: rises at once, falls slowly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Latency {
    estimate_us: u64,
    at_us: u64,
}

/// What one request says about a worker's speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It began to answer after this time.
    Began(Duration),
    /// It refused, or could not be reached. However quickly, that is not speed.
    Refused,
}

// === impl Latency ===

impl Latency {
    /// Takes in an answer at `now`.
    pub fn observe(&mut self, answer: Answer, now: Duration) {
        let known_us = self.estimate_at(now);
        let seen_us = match answer {
            Answer::Began(after) => micros(after),
            Answer::Refused => micros(PENALTY).max(known_us.saturating_mul(2)),
        };
        let cap_us = micros(PENALTY) * 60;
        let estimate_us = if seen_us >= known_us {
            seen_us.min(cap_us)
        } else {
            // A fast answer makes up for a tenth of the difference.
            known_us - (known_us - seen_us).div_ceil(10)
        };
        *self = Self { estimate_us, at_us: micros(now) };
    }

    /// The estimate at `now`, in microseconds.
    #[must_use]
    pub fn estimate_at(&self, now: Duration) -> u64 {
        let silence_us = micros(now).saturating_sub(self.at_us);
        let memory_us = micros(MEMORY);
        let kept = u128::from(self.estimate_us) * u128::from(memory_us)
            / u128::from(memory_us.saturating_add(silence_us));
        u64::try_from(kept).unwrap_or(u64::MAX).max(micros(UNKNOWN))
    }

    /// The two halves, to be kept in atomics.
    #[must_use]
    pub fn into_words(self) -> [u64; 2] {
        [self.estimate_us, self.at_us]
    }

    /// The reverse of [`into_words`](Self::into_words).
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
    fn who_refuses_fast_looks_slow_and_is_asked_again_later() {
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
