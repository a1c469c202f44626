use std::time::Duration;

/// Backoff with decorrelated jitter: each wait is random between `base` and three times the previous wait, at most
/// `cap`.
///
/// Unlike doubling with a little jitter, it does not depend on the attempt's number, so clients that failed
/// together drift apart instead of meeting again at every power of two.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::retry::Decorrelated;
///
/// let backoff = Decorrelated { base: Duration::from_millis(100), cap: Duration::from_secs(10) };
/// let first = backoff.next(Duration::ZERO, 0.5);
/// assert_eq!(first, Duration::from_millis(200), "half way between 100 ms and 300 ms");
/// assert_eq!(backoff.next(first, 1.0), Duration::from_millis(600));
/// assert_eq!(backoff.next(Duration::MAX, 1.0), backoff.cap);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decorrelated {
    /// Shortest wait. Default 100 ms.
    pub base: Duration,
    /// Longest wait, also if it is below `base`. Default 20 s.
    pub cap: Duration,
}

/// Backoff with full jitter: between zero and `base` doubled `attempt` times, at most `cap`. `attempt` is 0 before
/// the first retry, and `random` is in 0 … 1.
///
/// A NaN gives the longest wait: a faulty client must not retry sooner.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::retry::full_jitter;
///
/// let (base, cap) = (Duration::from_millis(50), Duration::from_secs(5));
/// assert_eq!(full_jitter(base, cap, 0, 0.5), Duration::from_millis(25));
/// assert_eq!(full_jitter(base, cap, 3, 1.0), Duration::from_millis(400));
/// assert_eq!(full_jitter(base, cap, u32::MAX, 1.0), cap);
/// ```
#[must_use]
pub fn full_jitter(base: Duration, cap: Duration, attempt: u32, random: f64) -> Duration {
    // More doublings than a Duration has bits of seconds reach the cap from any nonzero base.
    let doubled = match 2_u32.checked_pow(attempt) {
        Some(factor) => base.saturating_mul(factor),
        None => base.saturating_mul(u32::MAX).saturating_mul(u32::MAX),
    };
    share(doubled.min(cap), random)
}

/// Fraction of a duration, at most all of it.
pub(super) fn share(whole: Duration, random: f64) -> Duration {
    let random = if random.is_nan() { 1.0 } else { random.clamp(0.0, 1.0) };
    // Rounding may carry the longest durations out of range.
    Duration::try_from_secs_f64(whole.as_secs_f64() * random).map_or(whole, |part| part.min(whole))
}

// === impl Decorrelated ===

impl Decorrelated {
    /// Wait that follows `previous` (zero before the first retry), with `random` in 0 … 1.
    ///
    /// A NaN gives the longest wait.
    #[must_use]
    pub fn next(self, previous: Duration, random: f64) -> Duration {
        let ceiling = self.ceiling(previous);
        let base = self.base.min(ceiling);
        base + share(ceiling - base, random)
    }

    /// Longest wait that may follow `previous`.
    #[must_use]
    pub(super) fn ceiling(self, previous: Duration) -> Duration {
        previous.max(self.base).saturating_mul(3).min(self.cap)
    }
}

impl Default for Decorrelated {
    fn default() -> Self {
        Self { base: Duration::from_millis(100), cap: Duration::from_secs(20) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn durations() -> impl Strategy<Value = Duration> {
        let usual = (0..100_000_u64).prop_map(Duration::from_millis);
        prop_oneof![usual, any::<Duration>(), Just(Duration::ZERO), Just(Duration::MAX)]
    }

    fn chances() -> impl Strategy<Value = f64> {
        prop_oneof![0.0..=1.0, any::<f64>(), Just(f64::NAN), Just(f64::INFINITY)]
    }

    proptest! {
        #[test]
        fn a_full_jitter_is_at_most_its_doubled_base_and_its_cap(
            base in durations(), cap in durations(), attempt in any::<u32>(), random in chances(),
        ) {
            let wait = full_jitter(base, cap, attempt, random);
            prop_assert!(wait <= cap);
            let doublings = u32::checked_pow(2, attempt).unwrap_or(u32::MAX);
            prop_assert!(attempt >= 32 || wait <= base.saturating_mul(doublings));
        }

        #[test]
        fn a_decorrelated_wait_is_between_its_base_and_its_cap(
            base in durations(), cap in durations(), previous in durations(), random in chances(),
        ) {
            let wait = Decorrelated { base, cap }.next(previous, random);
            prop_assert!(base.min(cap) <= wait && wait <= cap, "{wait:?}");
        }

        #[test]
        fn a_wait_grows_with_chance(previous in durations(), low in 0.0..=1.0, high in 0.0..=1.0) {
            let backoff = Decorrelated::default();
            let [low, high] = if low <= high { [low, high] } else { [high, low] };
            prop_assert!(backoff.next(previous, low) <= backoff.next(previous, high));
        }
    }

    #[test]
    fn what_is_no_chance_waits_longest() {
        let backoff = Decorrelated::default();
        assert_eq!(backoff.next(Duration::ZERO, f64::NAN), Duration::from_millis(300));
        assert_eq!(full_jitter(backoff.base, backoff.cap, 1, f64::NAN), Duration::from_millis(200));
    }

    #[test]
    fn nothing_doubled_is_nothing() {
        assert_eq!(full_jitter(Duration::ZERO, Duration::MAX, u32::MAX, 1.0), Duration::ZERO);
    }
}
