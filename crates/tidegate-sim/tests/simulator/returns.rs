//! Retry advice, judged by what it does: clients that honour it are done about as soon as with the best retry
//! policy.

use std::time::Duration;
use tidegate_sim::returns::{
    ATTEMPTS_MAX, AdvisedClient, Advisor, ReturnCase, ReturnPolicy, best_rival, grid,
    judge_against, run,
};

const SEEDS: [u64; 2] = [1, 2];

/// The most that clients that honour the advice may take, as a multiple of the best rival.
const RATIO_MAX: f64 = 1.3;

/// Rivals that know the service time need at most 10 attempts. Until a server knows it, it costs a few more:
/// those of two clients with one request of 2 s each.
const ADVISED_ATTEMPTS_MAX: f64 = ATTEMPTS_MAX + 3.0;

const ADVISORS: [Advisor; 3] = [Advisor::Executor, Advisor::Gateway, Advisor::Admission];
const CLIENTS: [AdvisedClient; 2] = [AdvisedClient::Exact, AdvisedClient::Library];

fn assert_within_bounds(case: &ReturnCase) {
    let rival = best_rival(case, &SEEDS);
    for advisor in ADVISORS {
        for client in CLIENTS {
            let judged = judge_against(rival, case, advisor, client, &SEEDS);
            let (ratio, attempts) = (judged.ratio(), judged.advised.attempts);
            let what = format!("{case}, {advisor:?}, {client:?}");
            assert!(ratio <= RATIO_MAX, "{what}: {ratio} of {rival:?}");
            assert!(attempts <= ADVISED_ATTEMPTS_MAX, "{what}: {attempts} attempts");
        }
    }
}

#[test]
fn few_clients_that_honour_the_advice_are_done_within_1_3_times_the_best_rival() {
    let cases = grid(&[1, 2, 4, 6, 10], &[1, 3, 9], &[50, 200, 2000]);
    cases.iter().for_each(assert_within_bounds);
}

#[test]
fn many_clients_that_honour_the_advice_are_done_within_1_3_times_the_best_rival() {
    let cases = grid(&[30, 100], &[1, 3, 10, 29], &[50, 200, 2000]);
    cases.iter().for_each(assert_within_bounds);
}

/// 24 s of work on three slots, and three clients too many.
#[test]
fn six_clients_on_three_places_are_told_less_than_a_service() {
    let case = ReturnCase::default();
    for advisor in ADVISORS {
        let policy = ReturnPolicy::Advised(AdvisedClient::Exact);
        let figures = run(&case, advisor, policy, 1, 100.0).expect("few attempts");
        assert!(figures.advice_p50 < case.service, "{advisor:?}: {figures:?}");
        assert!(figures.makespan < Duration::from_secs(10), "{advisor:?}: {figures:?}");
    }
}

/// The yardstick of the advice tells a wait that is far too long, and clients that poll without pause.
#[test]
fn waits_that_are_far_too_long_or_too_short_fail() {
    let case = ReturnCase::default();
    let best = best_rival(&case, &SEEDS).figures;
    assert!(best.attempts <= ATTEMPTS_MAX, "{best:?}");
    let of = |policy, attempts_max| run(&case, Advisor::Executor, policy, 1, attempts_max);
    let long =
        of(ReturnPolicy::Fixed(Duration::from_secs(28)), ATTEMPTS_MAX).expect("few attempts");
    assert!(long.makespan > best.makespan.mul_f64(RATIO_MAX), "{long:?}");
    assert_eq!(of(ReturnPolicy::Fixed(Duration::from_millis(1)), ATTEMPTS_MAX), None);
    let queue = of(ReturnPolicy::Queue, 1.0).expect("one attempt each");
    assert!(queue.makespan <= best.makespan && queue.attempts == 1.0, "{queue:?}");
}
