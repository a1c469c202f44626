//! Every interleaving of small groups of threads over one retry budget.
//!
//! `make loom`: it needs a feature of its own.

use loom::thread;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::retry::{BudgetLimits, RetryBudget};

const SECOND: Duration = Duration::from_secs(1);

/// Runs a model in every interleaving there is, whatever the environment says.
fn explore(model: impl Fn() + Send + Sync + 'static) {
    explore_within(None, model);
}

/// As [`explore`], with at most so many switches away from a thread that could have gone on.
fn explore_within(preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(model);
}

/// One retry a request and no floor, over ten seconds, with so many requests at the start.
fn budget(requests: usize) -> Arc<RetryBudget> {
    let limits = BudgetLimits { ratio: 1.0, floor_per_s: 0.0, window: 10 * SECOND };
    let budget = RetryBudget::new(limits);
    (0..requests).for_each(|_| budget.record_request(Duration::ZERO));
    Arc::new(budget)
}

/// Asks once at each of these seconds, each on a thread of its own, the last on this one.
fn race<const N: usize>(budget: &Arc<RetryBudget>, seconds: [u32; N]) -> usize {
    let others: Vec<_> = seconds[..N - 1]
        .iter()
        .map(|&second| {
            let budget = Arc::clone(budget);
            thread::spawn(move || budget.try_retry(second * SECOND))
        })
        .collect();
    let mine = budget.try_retry(seconds[N - 1] * SECOND);
    let granted = others.into_iter().map(|other| other.join().unwrap());
    granted.filter(|granted| *granted).count() + usize::from(mine)
}

#[test]
fn loom_the_last_retry_goes_to_exactly_one_of_two() {
    explore(|| {
        let budget = budget(1);
        assert_eq!(race(&budget, [0, 0]), 1);
        assert!(!budget.try_retry(Duration::ZERO));
    });
}

#[test]
fn loom_the_last_two_retries_go_to_exactly_two_of_three_while_a_step_begins() {
    // Without a bound this takes minutes, and finds no more.
    explore_within(Some(3), || {
        let budget = budget(3);
        assert!(budget.try_retry(Duration::ZERO));
        assert_eq!(race(&budget, [0, 1, 1]), 2);
    });
}

#[test]
fn loom_the_last_retry_goes_to_exactly_one_while_a_step_begins() {
    explore(|| {
        let budget = budget(2);
        assert!(budget.try_retry(Duration::ZERO));
        assert_eq!(race(&budget, [0, 1]), 1);
        assert!(!budget.try_retry(2 * SECOND));
    });
}

#[test]
fn loom_two_that_open_a_step_count_what_both_took() {
    explore(|| {
        let budget = budget(3);
        assert!(budget.try_retry(Duration::ZERO));
        assert_eq!(race(&budget, [5, 5]), 2);
        assert!(!budget.try_retry(6 * SECOND));
        // The requests have left the window, and so has the first retry, but not the two.
        assert_eq!(budget.in_use(10 * SECOND).requests, 0);
        budget.record_request(10 * SECOND);
        budget.record_request(10 * SECOND);
        assert!(!budget.try_retry(14 * SECOND));
        assert!(budget.try_retry(15 * SECOND));
    });
}

#[test]
fn loom_nobody_is_refused_while_there_is_enough_for_all() {
    explore(|| {
        let budget = budget(3);
        let other = {
            let budget = Arc::clone(&budget);
            // The second opens a step after the first has taken one: together they overtake a slow reader.
            thread::spawn(move || budget.try_retry(Duration::ZERO) && budget.try_retry(SECOND))
        };
        assert!(budget.try_retry(Duration::ZERO));
        assert!(other.join().unwrap());
    });
}

#[test]
fn loom_one_who_is_a_window_late_takes_nothing_from_the_past() {
    explore(|| {
        let budget = budget(1);
        budget.record_request(10 * SECOND);
        // At the first second as at the tenth there is one to take, never two: the late one is told the
        // latest time by what it finds.
        assert_eq!(race(&budget, [9, 10]), 1);
    });
}

#[test]
fn loom_a_request_that_is_recorded_meanwhile_pays_for_one_retry_only() {
    explore(|| {
        let budget = budget(0);
        let other = {
            let budget = Arc::clone(&budget);
            thread::spawn(move || budget.record_request(Duration::ZERO))
        };
        let first = usize::from(budget.try_retry(Duration::ZERO));
        other.join().unwrap();
        let later = (0..2).filter(|_| budget.try_retry(Duration::ZERO)).count();
        assert_eq!(first + later, 1);
    });
}

#[test]
fn loom_requests_that_race_are_all_counted() {
    explore(|| {
        let budget = budget(1);
        let other = {
            let budget = Arc::clone(&budget);
            thread::spawn(move || budget.record_request(SECOND))
        };
        budget.record_request(SECOND);
        other.join().unwrap();
        assert_eq!(budget.in_use(SECOND).requests, 3);
    });
}
