use super::return_schedule::ReturnPace;
use super::{MessagePriority, PriorityLoadStats, Reason, Refusal};
use crate::flow::ServiceEstimator;
use std::time::Duration;

/// Bounds of the advised wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryBounds {
    /// Shortest advised wait.
    pub min: Duration,
    /// Longest advised wait, however slowly capacity frees.
    pub max: Duration,
}

/// Pace of returns per priority and limit, from the time that messages are in flight.
///
/// Fed with snapshots at an interval of the caller's choice. The time of a message follows from Little's law: the
/// messages in flight at the snapshots, over those that ended. Without completions the pace slows down with the
/// silence. Idleness is not silence: with nothing in flight, nothing can end.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::admission::*;
///
/// let tracker = InFlightTracker::new(PriorityLimits::new(10, 5, 3, 1), Sharing::Strict);
/// let mut advisor = RetryAdvisor::new();
/// for tick in 0..100 {
///     // One Low is in flight, for 100 ms.
///     let permit = tracker.try_acquire(MessagePriority::Low).expect("the slot is free");
///     advisor.observe(Duration::from_millis(tick * 100), &tracker.stats());
///     permit.success();
/// }
/// let pace = advisor.pace(Refusal { priority: MessagePriority::Low, reason: Reason::PriorityLimit });
/// assert_eq!((pace.service.as_millis(), pace.slots), (100, 1));
/// ```
#[derive(Clone, Debug, Default)]
pub struct RetryAdvisor {
    now_s: f64,
    started: bool,
    /// By priority, and of all that share the global limit.
    lanes: [Lane; MessagePriority::ALL.len() + 1],
}

/// Messages that share a limit.
#[derive(Clone, Copy, Debug, Default)]
struct Lane {
    estimator: ServiceEstimator,
    /// Completions before the first snapshot.
    ended_before: u64,
    ended: u64,
    in_flight: u64,
    /// Time in flight of all messages since the start.
    served_s: f64,
    /// Limit: what is in flight when a message is refused.
    limit: u64,
    /// Time of the last completion, or of the last snapshot with nothing in flight.
    changed_at_s: f64,
}

// === impl RetryBounds ===

impl Default for RetryBounds {
    fn default() -> Self {
        Self { min: Duration::from_millis(10), max: Duration::from_secs(30) }
    }
}

// === impl RetryAdvisor ===

impl RetryAdvisor {
    /// Creates an advisor without observations.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
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
        let (mut ended_all, mut in_flight_all) = (0, 0);
        for priority in MessagePriority::ALL {
            let ended = stats.finished[priority.index()].total();
            let in_flight = stats.in_flight(priority);
            let lane = &mut self.lanes[priority.index()];
            lane.limit = stats.limit(priority);
            lane.observe(now_s, elapsed_s, ended, in_flight, first);
            if priority != MessagePriority::Critical {
                ended_all += ended;
                in_flight_all += in_flight;
            }
        }
        let shared = &mut self.lanes[MessagePriority::ALL.len()];
        shared.limit = stats.global_limit;
        shared.observe(now_s, elapsed_s, ended_all, in_flight_all, first);
    }

    /// Pace at which messages that are refused so may return.
    #[must_use]
    pub fn pace(&self, refusal: Refusal) -> ReturnPace {
        let lane = &self.lanes[Self::lane_of(refusal)];
        let silence = Duration::from_secs_f64((self.now_s - lane.changed_at_s).max(0.0));
        ReturnPace::new(lane.estimator.service(), silence, lane.limit)
    }

    /// Index of the messages whose completions admit one that is refused so. At the global limit a completion of
    /// any priority admits any.
    pub(super) fn lane_of(refusal: Refusal) -> usize {
        match refusal.reason {
            Reason::PriorityLimit => refusal.priority.index(),
            Reason::GlobalLimit => MessagePriority::ALL.len(),
        }
    }
}

// === impl Lane ===

impl Lane {
    fn observe(&mut self, now_s: f64, elapsed_s: f64, ended: u64, in_flight: u64, first: bool) {
        if first {
            *self = Self { ended_before: ended, ended, in_flight, changed_at_s: now_s, ..*self };
            return;
        }
        // Between two snapshots the number in flight is about the mean of both.
        self.served_s += elapsed_s * (self.in_flight + in_flight) as f64 / 2.0;
        self.in_flight = in_flight;
        if ended > self.ended || in_flight == 0 {
            self.changed_at_s = now_s;
        }
        self.ended = ended;
        let served = Duration::from_secs_f64(self.served_s);
        self.estimator.observe(
            Duration::from_secs_f64(now_s),
            ended.saturating_sub(self.ended_before),
            served,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::{InFlightTracker, PriorityLimits, RetryBoard, Sharing};
    use super::*;

    const LOW_AT_LIMIT: Refusal =
        Refusal { priority: MessagePriority::Low, reason: Reason::PriorityLimit };

    /// An advisor, the totals it is shown, its board, and a clock.
    struct Bench {
        advisor: RetryAdvisor,
        board: RetryBoard,
        stats: PriorityLoadStats,
        now_ms: u64,
    }

    impl Bench {
        /// Low at its limit of 100, which is what there is advice for.
        fn new() -> Self {
            let limits = PriorityLimits { low: 100, ..PriorityLimits::default() };
            let tracker = InFlightTracker::new(limits, Sharing::Strict);
            let mut advisor = RetryAdvisor::new();
            let stats = PriorityLoadStats { low_in_flight: 100, ..tracker.stats() };
            advisor.observe(Duration::ZERO, &stats);
            Self { advisor, board: RetryBoard::new(RetryBounds::default()), stats, now_ms: 0 }
        }

        /// Some seconds in which so many Low end, and so many are refused at their limit, each second. Returns the
        /// wait of the next.
        fn run(&mut self, seconds: u64, freed_per_s: u64, refused_per_s: u64) -> f64 {
            let low = MessagePriority::Low.index();
            for _ in 0..seconds * 10 {
                self.now_ms += 100;
                self.stats.finished[low].success += freed_per_s / 10;
                self.advisor.observe(Duration::from_millis(self.now_ms), &self.stats);
                self.board.publish(&self.advisor);
                for _ in 0..refused_per_s / 10 {
                    let _ = self.board.take(LOW_AT_LIMIT, self.now());
                }
            }
            self.board.publish(&self.advisor);
            self.board.peek(LOW_AT_LIMIT, self.now()).as_secs_f64()
        }

        fn now(&self) -> Duration {
            Duration::from_millis(self.now_ms)
        }

        fn service_s(&self) -> f64 {
            self.advisor.pace(LOW_AT_LIMIT).service.as_secs_f64()
        }
    }

    fn assert_near(actual: f64, expected: f64) {
        assert!((actual - expected).abs() <= expected * 0.05, "{actual} is not near {expected}");
    }

    /// 100 slots that free 100 times a second take 130 attempts a second: of 200 refusals a second, 70 wait
    /// longer.
    #[test]
    fn the_advice_grows_with_the_clients_that_are_refused_beyond_the_turns() {
        assert_near(Bench::new().run(20, 100, 200), 20.0 * 70.0 / 130.0);
        assert!(Bench::new().run(20, 100, 100) < 0.1, "turns for all");
        assert!(Bench::new().run(600, 100, 900) <= 30.0, "never beyond the bound");
    }

    #[test]
    fn a_single_refusal_waits_for_one_turn() {
        // 10 s in each of 100 slots.
        assert_near(Bench::new().run(20, 10, 0), 10.0 / 130.0);
    }

    #[test]
    fn silence_raises_the_advice_to_the_bound_and_the_first_completions_bring_it_down() {
        let mut bench = Bench::new();
        let busy = bench.run(10, 100, 0);
        let stalled = bench.run(20, 0, 0);
        assert!(stalled > 10.0 * busy, "{stalled} after {busy}");
        assert_near(bench.run(200, 0, 10), 30.0);
        bench.run(60, 100, 0);
        assert_near(bench.run(1, 100, 0), busy);
    }

    #[test]
    fn slow_completions_are_measured() {
        let mut bench = Bench::new();
        let low = MessagePriority::Low.index();
        for _ in 0..6 {
            bench.run(10, 0, 0);
            bench.stats.finished[low].success += 1;
        }
        bench.run(1, 0, 0);
        // One of a hundred ends every 10 s.
        assert_near(bench.service_s(), 1000.0);
    }

    #[test]
    fn before_anything_has_ended_the_advice_grows_with_the_silence() {
        let mut bench = Bench::new();
        assert!(bench.run(0, 0, 0) < 0.1);
        assert_near(bench.run(8, 0, 0), 2.0);
        assert_near(bench.run(32, 0, 0), 10.0);
    }

    #[test]
    fn at_the_global_limit_every_priority_that_comes_free_counts() {
        let mut bench = Bench::new();
        bench.stats.low_in_flight = 0;
        bench.stats.high_in_flight = 100;
        bench.stats.normal_in_flight = 300;
        for tick in 1..=200 {
            for priority in [MessagePriority::High, MessagePriority::Normal] {
                bench.stats.finished[priority.index()].success += 10;
            }
            bench.advisor.observe(Duration::from_millis(tick * 100), &bench.stats);
        }
        let refusal = Refusal { priority: MessagePriority::Low, reason: Reason::GlobalLimit };
        let pace = bench.advisor.pace(refusal);
        // 400 in flight, of which 200 end a second.
        assert_near(pace.service.as_secs_f64(), 2.0);
        assert_eq!(pace.slots, bench.stats.global_limit);
    }

    #[test]
    fn idleness_is_not_silence() {
        let mut bench = Bench::new();
        let busy = bench.run(20, 100, 0);
        bench.stats.low_in_flight = 0;
        assert_near(bench.run(3600, 0, 0), busy);
        bench.stats.low_in_flight = 100;
        assert!(bench.run(10, 0, 0) > 10.0 * busy);
    }

    #[test]
    fn a_clock_that_stands_still_changes_nothing() {
        let mut bench = Bench::new();
        bench.run(10, 100, 0);
        let before = bench.advisor.pace(LOW_AT_LIMIT);
        bench.stats.finished[MessagePriority::Low.index()].success += 1_000_000;
        bench.advisor.observe(bench.now(), &bench.stats);
        assert_eq!(bench.advisor.pace(LOW_AT_LIMIT), before);
    }
}
