//! When a client does not come back, and what it returns then. Time is virtual.

use std::cell::Cell;
use std::future::{pending, ready};
use std::time::Duration;
use tidegate::retry::{
    BudgetLimits, Failed, Failure, GiveUpReason, RetryClient, RetryPolicy, Safety, Stopped,
};
use tokio::time::{Instant, sleep, timeout};

const POLICY: RetryPolicy = RetryPolicy {
    attempts_max: 3,
    deadline: Duration::from_secs(10),
    backoff: tidegate::retry::Decorrelated {
        base: Duration::from_millis(100),
        cap: Duration::from_secs(1),
    },
    retry_on: tidegate::retry::RetryOn::Lost,
};

fn client() -> RetryClient {
    RetryClient::new(POLICY, BudgetLimits::default())
}

/// Always fails so.
async fn always(failure: Failure, safety: Safety) -> Stopped<&'static str, Failure> {
    let client = client();
    let failed = || ready(Err::<(), _>(Failed::new(failure, failure)));
    let run = client.run("request", safety, |_| failed());
    run.await.expect_err("it always fails")
}

#[tokio::test(start_paused = true)]
async fn what_may_have_started_is_repeated_only_if_it_may_run_twice() {
    let once = always(Failure::Lost, Safety::Once).await;
    assert_eq!((once.attempts, once.why), (1, GiveUpReason::MayHaveStarted));
    let twice = always(Failure::Lost, Safety::Idempotent).await;
    assert_eq!((twice.attempts, twice.why), (3, GiveUpReason::Attempts));
}

#[tokio::test(start_paused = true)]
async fn the_request_comes_back_when_nobody_can_have_started_it() {
    for (failure, safety, unsent) in [
        (Failure::Refused, Safety::Once, Some("request")),
        (Failure::Unreachable, Safety::Once, Some("request")),
        (Failure::Lost, Safety::Once, None),
        (Failure::Lost, Safety::Idempotent, None),
        (Failure::Final, Safety::Idempotent, None),
    ] {
        let stopped = always(failure, safety).await;
        assert_eq!(stopped.unsent, unsent, "{failure:?} {safety:?}");
        assert_eq!(stopped.last, Some(failure));
    }
}

#[tokio::test(start_paused = true)]
async fn one_try_that_may_have_started_is_not_forgotten_by_a_refusal_after_it() {
    let mut failures = [Failure::Lost, Failure::Refused, Failure::Refused].into_iter();
    let client = client();
    let run = client.run((), Safety::Idempotent, |()| {
        let failure = failures.next().expect("three tries");
        ready(Err::<(), _>(Failed::new(failure, ())))
    });
    assert_eq!(run.await.expect_err("it always fails").unsent, None);
}

#[tokio::test(start_paused = true)]
async fn a_wait_beyond_the_deadline_is_not_slept() {
    let start = Instant::now();
    let client = client();
    let run = client.run((), Safety::Once, |()| {
        ready(Err::<(), _>(Failed::refused("busy").after(Duration::from_secs(11))))
    });
    let stopped = run.await.expect_err("it is refused");
    assert_eq!((stopped.attempts, stopped.why), (1, GiveUpReason::Deadline));
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert_eq!(stopped.unsent, Some(()));
}

#[tokio::test(start_paused = true)]
async fn a_try_that_never_ends_is_cut_off_at_the_deadline() {
    let mut calls = 0;
    let client = client();
    let run = client.run((), Safety::Idempotent, |()| {
        calls += 1;
        let first = calls == 1;
        async move {
            if first {
                sleep(Duration::from_secs(2)).await;
                return Err(Failed::lost("reset"));
            }
            pending::<Result<(), _>>().await
        }
    });
    let stopped = run.await.expect_err("it never ends");
    assert_eq!(stopped.elapsed.as_secs(), 10);
    assert_eq!(
        (stopped.why, stopped.last, stopped.unsent),
        (GiveUpReason::Deadline, Some("reset"), None)
    );
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_no_clock_can_tell_is_none() {
    let policy = RetryPolicy { deadline: Duration::MAX, ..POLICY };
    let client = RetryClient::new(policy, BudgetLimits::default());
    let run = client.run((), Safety::Once, |()| ready(Ok::<_, Failed<()>>(())));
    assert_eq!(run.await.expect("it is answered").attempts, 1);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_dropped_while_it_waits_asks_nobody_any_more() {
    let calls = Cell::new(0);
    let client = client();
    let run = client.run((), Safety::Once, |()| {
        calls.set(calls.get() + 1);
        ready(Err::<(), _>(Failed::refused(()).after(Duration::from_secs(5))))
    });
    timeout(Duration::from_secs(1), run).await.expect_err("it waits for five seconds");
    sleep(Duration::from_secs(60)).await;
    assert_eq!(calls.get(), 1);
}
