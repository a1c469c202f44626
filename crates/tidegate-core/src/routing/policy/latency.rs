use std::time::Duration;

/// The half-life of an estimate without new answers, so that an upstream that was slow or refused is tried again.
const MEMORY: Duration = Duration::from_secs(10);

/// The least latency that a refusal counts as. Answers are rarely slower, and an upstream that refuses in 1 ms
/// must not look like the fastest.
const PENALTY: Duration = Duration::from_secs(1);

/// The longest penalty.
const PENALTY_MAX: Duration = Duration::from_secs(60);

/// The latency of an upstream without answers: low enough to be tried soon, high enough not to be overloaded.
const UNKNOWN: Duration = Duration::from_millis(1);

/// An estimate of the time to the first byte of an upstream's body: rises at once, falls slowly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Latency {
    estimate_us: u64,
    at_us: u64,
    /// True if the estimate is the penalty of an outage: it ends by itself or with the first response.
    is_outage: bool,
}

/// Bit of the first word that marks an outage; no estimate is that long.
const OUTAGE: u64 = 1 << 63;

/// The answer of an upstream to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The body of the response began after this time.
    Began(Duration),
    /// A refusal, or no response in time. A fast refusal does not count as low latency.
    Refused,
    /// No connection, or one that broke: an outage. All failures within its penalty are one, and it is forgotten
    /// with the first response.
    Failed,
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
            Answer::Failed => return self.fail(now, since_us),
            Answer::Refused => micros(PENALTY).max(known_us.saturating_mul(2)),
        };
        let estimate_us = if seen_us >= known_us || self.is_outage {
            seen_us.min(micros(PENALTY_MAX))
        } else {
            // A faster answer lowers the estimate by a tenth of the difference.
            known_us - (known_us - seen_us).div_ceil(10)
        };
        *self = Self { estimate_us, at_us: micros(now), is_outage: false };
    }

    /// Penalizes an outage once, and twice as long if the upstream fails again after that.
    fn fail(&mut self, now: Duration, since_us: u64) {
        let estimate_us = match self.is_outage {
            true if since_us < self.estimate_us => return,
            true => self.estimate_us.saturating_mul(2).min(micros(PENALTY_MAX)),
            false => micros(PENALTY),
        };
        *self = Self { estimate_us, at_us: micros(now), is_outage: true };
    }

    /// Returns the estimate at `now`, in microseconds; `None` without responses, and after the penalty of an
    /// outage.
    #[must_use]
    pub fn known_at(&self, now: Duration) -> Option<u64> {
        let is_over = self.is_outage && micros(now).saturating_sub(self.at_us) >= self.estimate_us;
        (self.estimate_us > 0 && !is_over).then(|| self.estimate_at(now))
    }

    /// Returns the estimate at `now`, in microseconds.
    #[must_use]
    pub fn estimate_at(&self, now: Duration) -> u64 {
        let silence_us = micros(now).saturating_sub(self.at_us);
        if self.is_outage {
            let is_over = silence_us >= self.estimate_us;
            return if is_over { micros(UNKNOWN) } else { self.estimate_us };
        }
        let memory_us = micros(MEMORY);
        let kept = u128::from(self.estimate_us) * u128::from(memory_us)
            / u128::from(memory_us.saturating_add(silence_us));
        u64::try_from(kept).unwrap_or(u64::MAX).max(micros(UNKNOWN))
    }

    /// Returns the estimate as two words, to be stored in atomics.
    #[must_use]
    pub fn into_words(self) -> [u64; 2] {
        [self.estimate_us | if self.is_outage { OUTAGE } else { 0 }, self.at_us]
    }

    /// Restores an estimate from [`into_words`](Self::into_words).
    #[must_use]
    pub fn from_words([estimate_us, at_us]: [u64; 2]) -> Self {
        Self { estimate_us: estimate_us & !OUTAGE, at_us, is_outage: estimate_us & OUTAGE != 0 }
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
    fn an_outage_is_one_penalty_that_the_first_response_ends() {
        let mut latency = Latency::default();
        latency.observe(Answer::Began(Duration::from_millis(20)), s(9));
        for ms in 0..900 {
            latency.observe(Answer::Failed, s(10) + Duration::from_millis(ms));
        }
        let stored = Latency::from_words(latency.into_words());
        assert_eq!((stored, stored.known_at(s(10))), (latency, Some(1_000_000)));
        assert_eq!(latency.known_at(s(11)), None, "it is tried again");
        latency.observe(Answer::Failed, s(11));
        assert_eq!(latency.known_at(s(12)), Some(2_000_000), "still out: twice as long");
        latency.observe(Answer::Began(Duration::from_millis(30)), s(12));
        assert_eq!(latency.known_at(s(12)), Some(30_000), "forgotten");
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
