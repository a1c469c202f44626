use super::{MessagePriority, PriorityLoadStats, Reason, Refusal};
use crate::flow::{FreeRate, Rate};
use std::time::Duration;

/// Period of refused work that one answer spreads out: a refused client competes with about everything that was
/// refused in the same second.
const CONTENDERS_S: f64 = 1.0;

/// Bounds of the advised wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryBounds {
    /// Shortest advised wait.
    pub min: Duration,
    /// Longest advised wait, however slowly capacity frees.
    pub max: Duration,
}

/// Retry advice per priority and limit, from the rate at which capacity frees.
///
/// Fed with snapshots at an interval of the caller's choice. With `r` completions per second and `s` refusals per
/// second for the same limit, the refused work of one second takes `s / r` seconds: that is the advice, and at
/// least the time until one slot frees. Without completions the advice grows with the silence, up to the bound,
/// and falls again with the first completion. Idleness is not silence: with nothing in flight, nothing can end.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::admission::*;
///
/// let tracker = InFlightTracker::new(PriorityLimits::new(10, 5, 3, 1), Sharing::Strict);
/// let mut advisor = RetryAdvisor::new(RetryBounds::default());
/// for tick in 0..100 {
///     // One Low ends every 100 ms.
///     tracker.try_acquire(MessagePriority::Low).expect("the place is free").success();
///     advisor.observe(Duration::from_millis(tick * 100), &tracker.stats());
/// }
/// let refusal = Refusal { priority: MessagePriority::Low, reason: Reason::PriorityLimit };
/// let wait = advisor.advise(refusal);
/// assert!(wait >= Duration::from_millis(95) && wait <= Duration::from_millis(105), "{wait:?}");
/// ```
#[derive(Clone, Debug)]
pub struct RetryAdvisor {
    bounds: RetryBounds,
    now_s: f64,
    started: bool,
    freed: [FreeRate; 4],
    refused: [[Rate; 2]; 4],
}

// === impl RetryBounds ===

impl Default for RetryBounds {
    fn default() -> Self {
        Self { min: Duration::from_millis(50), max: Duration::from_secs(30) }
    }
}

impl RetryBounds {
    /// Applies jitter to an advised wait: 0.5 to 1.5 times its length, by `random` in 0 … 1, within the bounds.
    ///
    /// Give each client its own wait. Clients that get the same advice return all at once as soon as the advice
    /// falls, and wait longer in total than without any advice.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate_core::admission::RetryBounds;
    /// let spread = |random| RetryBounds::default().spread(Duration::from_secs(4), random).as_secs();
    /// assert_eq!([spread(0.0), spread(0.5), spread(1.0)], [2, 4, 6]);
    /// ```
    #[must_use]
    pub fn spread(self, wait: Duration, random: f64) -> Duration {
        let random = if random.is_nan() { 0.0 } else { random.clamp(0.0, 1.0) };
        wait.mul_f64(0.5 + random).min(self.max).max(self.min)
    }
}

// === impl RetryAdvisor ===

impl RetryAdvisor {
    /// Creates an advisor without observations.
    #[must_use]
    pub fn new(bounds: RetryBounds) -> Self {
        Self {
            bounds,
            now_s: 0.0,
            started: false,
            freed: [FreeRate::default(); 4],
            refused: [[Rate::default(); 2]; 4],
        }
    }

    /// Records a snapshot taken at `now`, the time since any fixed start. A time that does not advance is ignored.
    pub fn observe(&mut self, now: Duration, stats: &PriorityLoadStats) {
        let now_s = now.as_secs_f64();
        let elapsed_s = now_s - self.now_s;
        if self.started && elapsed_s <= 0.0 {
            return;
        }
        self.now_s = now_s;
        let first = !std::mem::replace(&mut self.started, true);
        for priority in MessagePriority::ALL {
            let lane = priority.index();
            let finished = stats.finished[lane].total();
            if first {
                self.freed[lane] = FreeRate::starting(now_s, finished);
            } else {
                self.freed[lane].observe(now_s, finished, stats.in_flight(priority));
            }
            for reason in Reason::ALL {
                let shed = stats.shed_by_reason[lane].of(reason);
                self.refused[lane][reason.index()].observe(elapsed_s, shed, first);
            }
        }
    }

    /// Advised wait for a refused message.
    #[must_use]
    pub fn advise(&self, refusal: Refusal) -> Duration {
        let lanes: &[MessagePriority] = match refusal.reason {
            Reason::PriorityLimit => &[refusal.priority],
            // A completion of any of these admits any of them.
            Reason::GlobalLimit => {
                &[MessagePriority::High, MessagePriority::Normal, MessagePriority::Low]
            }
        };
        let freed_per_s = self.freed_per_s(lanes);
        let refused_per_s: f64 = lanes
            .iter()
            .map(|lane| self.refused[lane.index()][refusal.reason.index()].per_s())
            .sum();
        let wait_s = if freed_per_s > 0.0 {
            (refused_per_s * CONTENDERS_S).max(1.0) / freed_per_s
        } else {
            self.silence_s(lanes)
        };
        let longest_s = self.bounds.max.as_secs_f64();
        Duration::from_secs_f64(wait_s.min(longest_s)).max(self.bounds.min)
    }

    /// Completions per second. An idle lane frees nothing for the others; if all are idle, their last known rates
    /// are the best estimate.
    fn freed_per_s(&self, lanes: &[MessagePriority]) -> f64 {
        let freed = || lanes.iter().map(|lane| &self.freed[lane.index()]);
        let all_idle = freed().all(|freed| freed.is_idle());
        freed()
            .filter(|freed| all_idle || !freed.is_idle())
            .map(|freed| freed.per_s(self.now_s))
            .sum()
    }

    /// Nothing has freed yet: the time since the start again, and at least 1 s.
    fn silence_s(&self, lanes: &[MessagePriority]) -> f64 {
        let since = lanes.iter().map(|lane| self.now_s - self.freed[lane.index()].last_at_s());
        since.fold(1.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{InFlightTracker, PriorityLimits, Sharing};
    use super::*;

    const LOW_AT_LIMIT: Refusal =
        Refusal { priority: MessagePriority::Low, reason: Reason::PriorityLimit };

    /// An advisor, the totals it is shown, and a clock.
    struct Bench {
        advisor: RetryAdvisor,
        stats: PriorityLoadStats,
        now_ms: u64,
    }

    impl Bench {
        fn new() -> Self {
            let tracker = InFlightTracker::new(PriorityLimits::default(), Sharing::Strict);
            let mut advisor = RetryAdvisor::new(RetryBounds::default());
            advisor.observe(Duration::ZERO, &tracker.stats());
            // At its limit, which is what there is advice for.
            let stats = PriorityLoadStats { low_in_flight: 200, ..tracker.stats() };
            Self { advisor, stats, now_ms: 0 }
        }

        /// Some seconds in which so many Low end, and so many are refused at their limit, each second.
        fn run(&mut self, seconds: u64, freed_per_s: u64, refused_per_s: u64) -> f64 {
            let low = MessagePriority::Low.index();
            for _ in 0..seconds * 10 {
                self.now_ms += 100;
                self.stats.finished[low].success += freed_per_s / 10;
                self.stats.shed_by_reason[low].priority_limit += refused_per_s / 10;
                self.advisor.observe(Duration::from_millis(self.now_ms), &self.stats);
            }
            self.advisor.advise(LOW_AT_LIMIT).as_secs_f64()
        }
    }

    fn assert_near(actual: f64, expected: f64) {
        assert!((actual - expected).abs() <= expected * 0.05, "{actual} is not near {expected}");
    }

    #[test]
    fn the_advice_is_the_time_that_the_last_second_s_refused_work_takes() {
        assert_near(Bench::new().run(20, 100, 900), 9.0);
        assert_near(Bench::new().run(20, 1000, 500), 0.5);
    }

    #[test]
    fn a_single_refusal_waits_for_one_place() {
        assert_near(Bench::new().run(20, 10, 0), 0.1);
    }

    #[test]
    fn silence_raises_the_advice_to_the_bound_and_the_first_completions_bring_it_down() {
        let mut bench = Bench::new();
        let busy = bench.run(10, 100, 100);
        let stalled = bench.run(20, 0, 100);
        assert!(stalled > 10.0 * busy, "{stalled} after {busy}");
        assert!(bench.run(60, 0, 100) <= 30.0, "never beyond the bound");
        assert_near(bench.run(20, 100, 100), busy);
    }

    #[test]
    fn slow_completions_are_measured_by_their_interval() {
        let mut bench = Bench::new();
        let low = MessagePriority::Low.index();
        for _ in 0..6 {
            bench.run(10, 0, 0);
            bench.stats.finished[low].success += 1;
        }
        assert_near(bench.run(1, 0, 0), 10.0);
    }

    #[test]
    fn before_anything_has_ended_the_advice_is_a_second_and_grows_with_the_silence() {
        let mut bench = Bench::new();
        assert_near(bench.run(0, 0, 0), 1.0);
        assert_near(bench.run(5, 0, 1000), 5.0);
    }

    #[test]
    fn at_the_global_limit_every_priority_that_comes_free_counts() {
        let mut bench = Bench::new();
        for tick in 1..=200 {
            for priority in [MessagePriority::High, MessagePriority::Normal] {
                bench.stats.finished[priority.index()].success += 5;
            }
            bench.stats.shed_by_reason[MessagePriority::Low.index()].global_limit += 20;
            bench.advisor.observe(Duration::from_millis(tick * 100), &bench.stats);
        }
        let refusal = Refusal { priority: MessagePriority::Low, reason: Reason::GlobalLimit };
        assert_near(bench.advisor.advise(refusal).as_secs_f64(), 2.0);
    }

    #[test]
    fn idleness_is_not_silence() {
        let mut bench = Bench::new();
        let busy = bench.run(20, 100, 0);
        bench.stats.low_in_flight = 0;
        assert_near(bench.run(3600, 0, 0), busy);
        bench.stats.low_in_flight = 200;
        assert_near(bench.run(2, 0, 0), 2.0);
    }

    #[test]
    fn before_anything_was_in_flight_the_advice_is_a_second() {
        let mut bench = Bench::new();
        bench.stats.low_in_flight = 0;
        assert_near(bench.run(3600, 0, 0), 1.0);
    }

    #[test]
    fn an_idle_priority_frees_nothing_for_the_others() {
        let mut bench = Bench::new();
        bench.stats.high_in_flight = 1;
        for _ in 0..20 {
            bench.stats.finished[MessagePriority::High.index()].success += 1000;
            bench.run(1, 10, 0);
        }
        bench.stats.high_in_flight = 0;
        bench.run(1, 10, 0);
        let refusal = Refusal { priority: MessagePriority::Low, reason: Reason::GlobalLimit };
        assert_near(bench.advisor.advise(refusal).as_secs_f64(), 0.1);
    }

    #[test]
    fn a_spread_wait_stays_within_the_bounds_whatever_the_chance() {
        let bounds = RetryBounds::default();
        for wait in [Duration::ZERO, bounds.min, Duration::from_secs(4), bounds.max] {
            for random in [f64::NEG_INFINITY, 0.0, 0.3, 1.0, 7.0, f64::NAN] {
                let spread = bounds.spread(wait, random);
                assert!(bounds.min <= spread && spread <= bounds.max, "{wait:?} {random}");
            }
        }
    }

    #[test]
    fn a_clock_that_stands_still_changes_nothing() {
        let mut bench = Bench::new();
        let before = bench.run(10, 100, 300);
        bench.stats.finished[MessagePriority::Low.index()].success += 1_000_000;
        bench.advisor.observe(Duration::from_millis(bench.now_ms), &bench.stats);
        assert_near(bench.advisor.advise(LOW_AT_LIMIT).as_secs_f64(), before);
    }
}
