use crate::sync::{AtomicU64, Ordering};
use std::time::Duration;

/// Steps of the sliding window: 10 are few enough to read at once, and a retry counts at most a tenth of the
/// window less than the full window.
const STEPS: usize = 10;

/// Bits of an entry's count, below its step. 40 bits of 10 ms steps, the shortest, last 348 years; 24 bits count
/// 16 million requests per step, and more are not counted.
const COUNT_BITS: u32 = 24;
const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;

/// Ratios are stored in millionths, so that a fifth of five requests is one retry and not a rounding less.
const MILLION: f64 = 1e6;

/// Limits of a retry budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BudgetLimits {
    /// Retries per request, 0 … 10. Default 0.2: a dead server sees a fifth more load, not five times the load.
    pub ratio: f64,
    /// Additional retries per second, so that a client with few requests can retry at all: 0 … 1,000,000. Default
    /// 1.
    pub floor_per_s: f64,
    /// Sliding window over which both are counted, 100 ms … 1 h. Default 10 s.
    pub window: Duration,
}

/// Retry budget: limits the retries of all its users to a share of their requests.
///
/// At every grant: the retries of the last window ≤ `ratio` · the requests of the last window + `floor_per_s` ·
/// the window. The window moves in tenths of itself and ends with the current tenth. A request therefore pays for
/// no retry twice, and over any period the retries are at most `ratio` of the requests since one window before it,
/// plus the floor. Requests and retries are both forgotten as the window moves, so no past retry counts for longer
/// than a window.
///
/// Lock-free: one compare-and-swap counts a request and one grants a retry, on a single word, so no race grants
/// one more than the budget allows. A retry itself is not counted as a request.
///
/// `now` is the time since any fixed start, the same for all users of the budget. If they disagree, the latest
/// time counts.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::retry::{BudgetLimits, RetryBudget};
///
/// let limits = BudgetLimits { floor_per_s: 0.0, ..BudgetLimits::default() };
/// let budget = RetryBudget::new(limits);
/// let now = Duration::from_secs(3);
/// (0..10).for_each(|_| budget.record_request(now));
/// let granted = (0..10).filter(|_| budget.try_retry(now)).count();
/// assert_eq!(granted, 2, "a fifth of ten");
/// ```
#[derive(Debug)]
pub struct RetryBudget {
    limits: BudgetLimits,
    step_ns: u128,
    ratio_millionths: u64,
    floor_millionths: u64,
    /// Retries granted so far: the word that a grant swaps.
    granted: AtomicU64,
    /// Requests by step, at the step's index modulo the number of steps.
    requests: [AtomicU64; STEPS],
    /// Low bits of `granted` at the start of each step, set before the first grant of that step. Too low a value
    /// only counts older retries for longer.
    starts: [AtomicU64; STEPS],
}

/// Use of a budget within the last window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BudgetUse {
    /// Requests recorded.
    pub requests: u64,
    /// Retries granted.
    pub retries: u64,
    /// Retries allowed by these requests and the floor.
    pub allowed: u64,
}

/// Step and count in one word; step 0 means empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry(u64);

/// Entries as one reader saw them.
struct Survey {
    /// Latest step seen.
    step: u64,
    /// Entry at the index of that step's start.
    start: Entry,
    found: BudgetUse,
}

// === impl BudgetLimits ===

impl Default for BudgetLimits {
    fn default() -> Self {
        Self { ratio: 0.2, floor_per_s: 1.0, window: Duration::from_secs(10) }
    }
}

impl BudgetLimits {
    /// Clamped to the ranges; NaN becomes 0.
    fn clamped(self) -> Self {
        let within =
            |value: f64, max: f64| if value.is_nan() { 0.0 } else { value.clamp(0.0, max) };
        Self {
            ratio: within(self.ratio, 10.0),
            floor_per_s: within(self.floor_per_s, 1e6),
            window: self.window.clamp(Duration::from_millis(100), Duration::from_secs(3600)),
        }
    }
}

// === impl RetryBudget ===

impl RetryBudget {
    /// Creates an unused budget. Limits out of range are clamped, and NaN counts as 0.
    #[must_use]
    pub fn new(limits: BudgetLimits) -> Self {
        let limits = limits.clamped();
        let floor = limits.floor_per_s * limits.window.as_secs_f64();
        Self {
            limits,
            step_ns: limits.window.as_nanos() / STEPS as u128,
            ratio_millionths: (limits.ratio * MILLION).round() as u64,
            floor_millionths: (floor * MILLION).round() as u64,
            granted: AtomicU64::new(0),
            requests: std::array::from_fn(|_| AtomicU64::new(0)),
            starts: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    /// Limits in force.
    #[must_use]
    pub fn limits(&self) -> BudgetLimits {
        self.limits
    }

    /// Counts a request. A retry is not one.
    pub fn record_request(&self, now: Duration) {
        let step = self.step_of(now);
        let word = &self.requests[index(step)];
        // Relaxed: the count publishes nothing else.
        let mut seen = Entry(word.load(Ordering::Relaxed));
        loop {
            let counted = if seen.step() < step {
                Entry::new(step, 1)
            } else {
                Entry::new(seen.step(), (seen.count() + 1).min(COUNT_MAX))
            };
            let swap =
                word.compare_exchange(seen.0, counted.0, Ordering::Relaxed, Ordering::Relaxed);
            match swap {
                Ok(_) => return,
                Err(other) => seen = Entry(other),
            }
        }
    }

    /// Takes one retry from the budget. Returns false and changes nothing if the budget is spent.
    #[must_use = "a retry that was granted is spent"]
    pub fn try_retry(&self, now: Duration) -> bool {
        let now = self.step_of(now);
        loop {
            // Acquire, and before the entries: the thread that granted what is counted here had opened its step.
            let granted = self.granted.load(Ordering::Acquire);
            let survey = self.survey(now, granted);
            if survey.start.step() < survey.step {
                self.open(&survey, granted);
                continue;
            }
            let spent = survey.found.retries >= survey.found.allowed;
            if spent && self.granted.load(Ordering::Acquire) == granted {
                return false;
            }
            if !spent && self.swap(granted) {
                return true;
            }
        }
    }

    /// Use within the last window, for operators and metrics. Under concurrent use the numbers may be of slightly
    /// different moments.
    #[must_use]
    pub fn in_use(&self, now: Duration) -> BudgetUse {
        let granted = self.granted.load(Ordering::Acquire);
        let found = self.survey(self.step_of(now), granted).found;
        BudgetUse { retries: found.retries.min(found.allowed), ..found }
    }

    /// Reads all entries once. They may be of different moments; the next compare-and-swap detects a grant in
    /// between, and everything else only moves forward.
    fn survey(&self, now: u64, granted: u64) -> Survey {
        let starts = self.starts.each_ref().map(|word| Entry(word.load(Ordering::Acquire)));
        let requests = self.requests.each_ref().map(|word| Entry(word.load(Ordering::Relaxed)));
        let step = starts.iter().chain(&requests).map(|entry| entry.step()).fold(now, u64::max);
        let within = |entry: &&Entry| entry.step() != 0 && entry.step() + STEPS as u64 > step;
        let requests = requests.iter().filter(within).map(|entry| entry.count()).sum();
        let since = |entry: &Entry| granted.wrapping_sub(entry.count()) & COUNT_MAX;
        let retries = starts.iter().filter(within).map(since).max().unwrap_or(0);
        let found = BudgetUse { requests, retries, allowed: self.allowed(requests) };
        Survey { step, start: starts[index(step)], found }
    }

    /// Marks the start of a step. The thread that loses this race finds it marked.
    fn open(&self, survey: &Survey, granted: u64) {
        let opened = Entry::new(survey.step, granted & COUNT_MAX);
        let word = &self.starts[index(survey.step)];
        // Release: a thread that sees the mark sees at least as many grants as it records.
        let _ =
            word.compare_exchange(survey.start.0, opened.0, Ordering::AcqRel, Ordering::Relaxed);
    }

    fn swap(&self, granted: u64) -> bool {
        let next = granted.wrapping_add(1);
        let swap =
            self.granted.compare_exchange(granted, next, Ordering::AcqRel, Ordering::Relaxed);
        swap.is_ok()
    }

    /// Retries allowed. Always below half of the counter's range, so that a difference of counts is never
    /// ambiguous.
    fn allowed(&self, requests: u64) -> u64 {
        let millionths = requests * self.ratio_millionths + self.floor_millionths;
        (millionths / MILLION as u64).min(COUNT_MAX / 2)
    }

    fn step_of(&self, now: Duration) -> u64 {
        let step = now.as_nanos() / self.step_ns + 1;
        step.min(u128::from(u64::MAX >> COUNT_BITS)) as u64
    }
}

impl Default for RetryBudget {
    fn default() -> Self {
        Self::new(BudgetLimits::default())
    }
}

// === impl Entry ===

impl Entry {
    fn new(step: u64, count: u64) -> Self {
        Self(step << COUNT_BITS | count)
    }

    fn step(self) -> u64 {
        self.0 >> COUNT_BITS
    }

    fn count(self) -> u64 {
        self.0 & COUNT_MAX
    }
}

fn index(step: u64) -> usize {
    (step % STEPS as u64) as usize
}

#[cfg(all(test, not(feature = "__loom")))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NO_FLOOR: BudgetLimits =
        BudgetLimits { ratio: 0.2, floor_per_s: 0.0, window: Duration::from_secs(10) };

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn record(budget: &RetryBudget, count: usize, now: Duration) {
        (0..count).for_each(|_| budget.record_request(now));
    }

    fn granted(budget: &RetryBudget, asked: usize, now: Duration) -> usize {
        (0..asked).filter(|_| budget.try_retry(now)).count()
    }

    #[test]
    fn a_client_without_requests_has_the_floor() {
        let budget = RetryBudget::default();
        assert_eq!(granted(&budget, 100, at(0)), 10, "1 a second over 10 s");
        assert_eq!(granted(&budget, 100, at(9_999)), 0);
        assert_eq!(granted(&budget, 100, at(10_000)), 10);
    }

    #[test]
    fn requests_are_forgotten_after_a_window_and_not_before() {
        let budget = RetryBudget::new(NO_FLOOR);
        record(&budget, 100, at(500));
        assert_eq!(granted(&budget, 5, at(9_900)), 5);
        assert_eq!(granted(&budget, 100, at(10_000)), 0);
    }

    #[test]
    fn a_spent_budget_recovers_after_silence_and_with_new_requests() {
        let budget = RetryBudget::new(NO_FLOOR);
        for round in 0..1_000 {
            let now = at(round * 10_000);
            record(&budget, 100, now);
            assert_eq!(granted(&budget, 1_000, now), 20, "round {round}");
        }
    }

    #[test]
    fn a_time_that_runs_backwards_grants_no_more() {
        let budget = RetryBudget::new(NO_FLOOR);
        record(&budget, 100, at(50_000));
        assert_eq!(granted(&budget, 100, at(50_000)), 20);
        for ms in [0, 10_000, 30_000, 49_999] {
            assert_eq!(granted(&budget, 100, at(ms)), 0, "{ms}");
        }
    }

    #[test]
    fn what_is_no_limit_grants_nothing_and_the_largest_do_not_overflow() {
        let nan = BudgetLimits { ratio: f64::NAN, floor_per_s: f64::NAN, window: Duration::ZERO };
        let budget = RetryBudget::new(nan);
        record(&budget, 100, at(1));
        assert_eq!(granted(&budget, 100, at(1)), 0);
        let huge = f64::INFINITY;
        let most = BudgetLimits { ratio: huge, floor_per_s: huge, window: Duration::MAX };
        let budget = RetryBudget::new(most);
        record(&budget, 100, Duration::MAX);
        assert!(budget.try_retry(Duration::MAX));
        assert_eq!(budget.in_use(Duration::MAX).allowed, COUNT_MAX / 2);
    }

    #[test]
    fn the_use_is_what_was_seen() {
        let budget = RetryBudget::default();
        record(&budget, 50, at(0));
        assert!(budget.try_retry(at(3_000)));
        let expected = BudgetUse { requests: 50, retries: 1, allowed: 20 };
        assert_eq!(budget.in_use(at(4_000)), expected);
        let later = BudgetUse { requests: 0, retries: 0, allowed: 10 };
        assert_eq!(budget.in_use(at(60_000)), later);
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Request,
        Retry,
        Pass(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let pass = prop_oneof![0..300_u64, 900..1_100_u64, 5_000..30_000_u64].prop_map(Step::Pass);
        let step = prop_oneof![4 => Just(Step::Request), 4 => Just(Step::Retry), 2 => pass];
        proptest::collection::vec(step, 0..400)
    }

    proptest! {
        /// A plain list of what happened is the model: the budget grants exactly when the model would.
        #[test]
        fn a_retry_is_granted_exactly_when_the_window_allows(
            steps in steps(), ratio_percent in 0..300_u64, floor_tenths in 0..20_u64,
        ) {
            let limits = BudgetLimits {
                ratio: ratio_percent as f64 / 100.0,
                floor_per_s: floor_tenths as f64 / 10.0,
                window: at(10_000),
            };
            let budget = RetryBudget::new(limits);
            let (mut now, mut requests, mut retries) = (0, Vec::new(), Vec::new());
            for step in steps {
                let within = |then: &&u64| **then / 1_000 + 10 > now / 1_000;
                match step {
                    Step::Pass(ms) => now += ms,
                    Step::Request => {
                        requests.push(now);
                        budget.record_request(at(now));
                    }
                    Step::Retry => {
                        let asked = requests.iter().filter(within).count() as u64;
                        let used = retries.iter().filter(within).count() as u64;
                        let allowed = (asked * ratio_percent + floor_tenths * 100) / 100;
                        let expected = used < allowed;
                        prop_assert_eq!(budget.try_retry(at(now)), expected, "at {} ms", now);
                        if expected {
                            retries.push(now);
                        }
                    }
                }
            }
        }

        /// In any stretch at all, not only in windows that end with a grant.
        #[test]
        fn no_request_pays_twice(steps in steps()) {
            let budget = RetryBudget::new(NO_FLOOR);
            let (mut now, mut requests, mut retries) = (0, 0_u64, 0_u64);
            for step in steps {
                match step {
                    Step::Pass(ms) => now += ms,
                    Step::Request => {
                        requests += 1;
                        budget.record_request(at(now));
                    }
                    Step::Retry => retries += u64::from(budget.try_retry(at(now))),
                }
                prop_assert!(retries * 5 <= requests, "{} of {}", retries, requests);
            }
        }
    }
}
