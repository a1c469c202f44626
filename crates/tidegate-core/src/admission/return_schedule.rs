use super::{RetryBounds, Spread};
use crate::sync::{AtomicU64, Ordering};
use std::time::Duration;

/// Attempts in one service time beyond one for each slot, in standard deviations. `n` slots free about `n ± √n`
/// times in one service time, and a slot stays free until the next attempt. With `n + 3·√n` attempts in a service
/// time at least 3/4 of the slots are in use (Erlang's formula B: 0.80 of one slot, 0.85 of two, 0.95 of 30).
const DEVIATIONS: f64 = 3.0;

/// Attempts in the time that a completion is overdue, by one client: as many as one slot gets in a service time.
const OVERDUE_ATTEMPTS: f64 = 1.0 + DEVIATIONS;

/// Jitter of a turn, as a part of its wait in either direction: enough that two neighbouring turns may swap.
const JITTER: f64 = 0.25;

/// Assumed time of a request before one has ended. Too short costs a few attempts, until the silence is longer;
/// too long leaves slots free.
const SERVICE_AT_FIRST: Duration = Duration::from_millis(50);

/// Pace at which refused clients may return to some slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReturnPace {
    /// Time of a request in its slot, as far as is known.
    pub service: Duration,
    /// Slots in use when requests are refused.
    pub slots: u64,
    /// Time for which a completion is overdue.
    pub overdue: Duration,
}

/// Turns of the clients that were refused and will return, at one limit. Shared between threads without a lock.
///
/// Each refused client gets the next turn; the clients that wait are those whose turns are yet to come, so a
/// client that returns and is refused again is not counted twice. Turns follow one another so that all clients
/// together, however many they are, make a few attempts in one service time of a slot: enough to keep the slots
/// in use, and no more. Memory: one time, whatever the number of clients.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::admission::{RetryBounds, ReturnPace, ReturnSchedule};
///
/// let (schedule, bounds) = (ReturnSchedule::default(), RetryBounds::default());
/// let pace = ReturnPace { service: Duration::from_secs(4), slots: 1, ..ReturnPace::default() };
/// let now = Duration::from_secs(100);
/// // One slot and three standard deviations: four turns in four seconds, one a second.
/// for turn in 1..=3 {
///     assert_eq!(schedule.peek(pace, bounds, now), Duration::from_secs(turn));
///     let wait = schedule.take(pace, bounds, now).as_secs_f64() / turn as f64;
///     assert!((0.75..=1.25).contains(&wait), "with jitter of a quarter: {wait}");
/// }
/// // The first of them has returned and is refused again: the other two come first.
/// assert_eq!(schedule.peek(pace, bounds, now + Duration::from_secs(1)), Duration::from_secs(3));
/// ```
#[derive(Debug)]
pub struct ReturnSchedule {
    /// The last turn that was given, in nanoseconds.
    last_turn: AtomicU64,
    refused_at: AtomicU64,
    spread: Spread,
}

// === impl ReturnPace ===

impl ReturnPace {
    /// Creates the pace of slots that are in use, from the mean time of a request in its slot if one is known, and
    /// the time since one ended.
    ///
    /// Until a request has ended, a service is assumed to take as long as nothing has ended, and at least 50 ms:
    /// at worst this makes some attempts too many.
    #[must_use]
    pub fn new(service: Option<Duration>, silence: Duration, slots: u64) -> Self {
        let usual = service.unwrap_or(SERVICE_AT_FIRST);
        Self { service: usual.max(silence), slots, overdue: silence.saturating_sub(usual) }
    }

    /// Time between two turns.
    fn interval_s(&self) -> f64 {
        let slots = self.slots.max(1) as f64;
        self.service.as_secs_f64() / (slots + DEVIATIONS * slots.sqrt())
    }
}

// === impl ReturnSchedule ===

impl Default for ReturnSchedule {
    fn default() -> Self {
        Self {
            last_turn: AtomicU64::new(0),
            refused_at: AtomicU64::new(0),
            spread: Spread::default(),
        }
    }
}

impl ReturnSchedule {
    /// Gives a refused client the next turn, and returns its wait.
    pub fn take(&self, pace: ReturnPace, bounds: RetryBounds, now: Duration) -> Duration {
        let now_ns = nanos(now);
        // For a whole service nobody was refused: those who have a turn do not come, or find room.
        let refused_at = self.refused_at.swap(now_ns, Ordering::Relaxed);
        if now_ns.saturating_sub(refused_at) > nanos(pace.service) {
            self.last_turn.store(now_ns, Ordering::Relaxed);
        }
        let end = now_ns.saturating_add(nanos(bounds.max));
        let next = |last| Some(next_turn(last, pace, bounds, now_ns)).filter(|turn| *turn <= end);
        let random = self.spread.next();
        let taken = self.last_turn.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        let wait = match taken {
            Ok(last) => {
                let lead = next_turn(last, pace, bounds, now_ns).saturating_sub(now_ns);
                // Without jitter, equal services and equal waits fall into step, and the same client comes a
                // moment too early every time.
                Duration::from_nanos(lead).mul_f64(1.0 - JITTER + 2.0 * JITTER * random)
            }
            // More clients than the longest wait has turns for: they share its second half.
            Err(_full) => bounds.max.mul_f64(0.5 + random / 2.0),
        };
        // Spread by half of itself: all are told the same while nothing ends.
        let floor = pace.overdue.div_f64(OVERDUE_ATTEMPTS).mul_f64(1.0 + random / 2.0);
        wait.max(floor).min(bounds.max).max(bounds.min)
    }

    /// Returns the wait of the next refused client, without giving it a turn.
    #[must_use]
    pub fn peek(&self, pace: ReturnPace, bounds: RetryBounds, now: Duration) -> Duration {
        let now_ns = nanos(now);
        let refused_at = self.refused_at.load(Ordering::Relaxed);
        let last = match now_ns.saturating_sub(refused_at) > nanos(pace.service) {
            true => now_ns,
            false => self.last_turn.load(Ordering::Relaxed),
        };
        let turn = next_turn(last, pace, bounds, now_ns);
        let wait = Duration::from_nanos(turn.saturating_sub(now_ns));
        let floor = pace.overdue.div_f64(OVERDUE_ATTEMPTS);
        wait.max(floor).min(bounds.max).max(bounds.min)
    }
}

fn next_turn(last: u64, pace: ReturnPace, bounds: RetryBounds, now_ns: u64) -> u64 {
    let interval_s = pace.interval_s().min(bounds.max.as_secs_f64());
    let interval = (interval_s * 1e9) as u64;
    let earliest = now_ns.saturating_add(nanos(bounds.min));
    last.max(now_ns).saturating_add(interval).max(earliest)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOUNDS: RetryBounds =
        RetryBounds { min: Duration::from_millis(10), max: Duration::from_secs(30) };

    fn pace(service_ms: u64, slots: u64) -> ReturnPace {
        ReturnPace::new(Some(Duration::from_millis(service_ms)), Duration::ZERO, slots)
    }

    /// Lets clients return as told and be refused each time, and returns their attempts in `seconds`.
    fn attempts(clients: u64, pace: ReturnPace, seconds: u64) -> u64 {
        let schedule = ReturnSchedule::default();
        let mut returns: Vec<_> = (0..clients).map(Duration::from_millis).collect();
        let (end, mut count) = (Duration::from_secs(seconds), 0);
        while let Some(first) = returns.iter_mut().min().filter(|first| **first < end) {
            *first += schedule.take(pace, BOUNDS, *first);
            count += 1;
        }
        count
    }

    #[test]
    fn the_number_of_clients_changes_the_waits_but_not_the_attempts() {
        // Four slots and six more attempts in two seconds: five a second.
        for clients in [4, 40, 100] {
            let count = attempts(clients, pace(2_000, 4), 100);
            assert!((450..=650).contains(&count), "{count} attempts of {clients}");
        }
    }

    #[test]
    fn a_client_that_returns_is_not_counted_again() {
        let schedule = ReturnSchedule::default();
        let (pace, mut now) = (pace(4_000, 1), Duration::from_secs(10));
        let waits: Vec<_> = (0..100)
            .map(|_| {
                let wait = schedule.take(pace, BOUNDS, now);
                now += wait;
                wait
            })
            .collect();
        // Its turn is a second away, give or take a quarter; up to a quarter of a second is left of the last one.
        assert!(waits.iter().all(|wait| *wait <= Duration::from_millis(1_563)), "{waits:?}");
    }

    #[test]
    fn clients_beyond_the_longest_wait_are_spread_over_its_second_half() {
        let schedule = ReturnSchedule::default();
        let now = Duration::from_secs(1);
        let waits: Vec<_> =
            (0..1_000).map(|_| schedule.take(pace(2_000, 1), BOUNDS, now)).collect();
        let beyond = &waits[100..];
        assert!(beyond.iter().all(|wait| (15..=30).contains(&wait.as_secs())), "{beyond:?}");
        let early = beyond.iter().filter(|wait| wait.as_millis() < 22_500).count();
        assert!((400..=500).contains(&early), "{early} of 900 in the first half");
    }

    #[test]
    fn a_service_without_a_refusal_ends_the_waits() {
        let schedule = ReturnSchedule::default();
        let now = Duration::from_secs(1);
        for _ in 0..1_000 {
            let _ = schedule.take(pace(200, 1), BOUNDS, now);
        }
        assert!(schedule.peek(pace(200, 1), BOUNDS, now) > Duration::from_secs(20));
        let later = now + Duration::from_millis(201);
        assert!(schedule.peek(pace(200, 1), BOUNDS, later) < Duration::from_millis(100));
        assert!(schedule.take(pace(200, 1), BOUNDS, later) < Duration::from_millis(100));
    }

    proptest! {
        #[test]
        fn a_wait_is_within_the_bounds_and_nothing_panics(
            service in any::<Option<Duration>>(),
            silence in any::<Duration>(),
            slots in any::<u64>(),
            now in any::<Duration>(),
            rounds in 1..20_usize,
        ) {
            let schedule = ReturnSchedule::default();
            let pace = ReturnPace::new(service, silence, slots);
            for _ in 0..rounds {
                let next = schedule.peek(pace, BOUNDS, now);
                let wait = schedule.take(pace, BOUNDS, now);
                for wait in [next, wait] {
                    prop_assert!(BOUNDS.min <= wait && wait <= BOUNDS.max, "{:?}", wait);
                }
            }
        }
    }
}
