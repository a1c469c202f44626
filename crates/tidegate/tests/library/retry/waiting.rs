//! When a refused client comes back. Time is virtual.

use std::cell::RefCell;
use std::future::ready;
use std::time::Duration;
use tidegate::retry::{BudgetLimits, Failed, RetryClient, RetryPolicy, Safety};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Every request may be retried: what is under test here is when.
const NO_BUDGET: BudgetLimits =
    BudgetLimits { ratio: 10.0, floor_per_s: 1e6, window: Duration::from_secs(10) };

#[tokio::test(start_paused = true)]
async fn a_server_is_not_asked_before_the_time_it_named() {
    let policy = RetryPolicy { deadline: Duration::from_secs(3600), ..RetryPolicy::default() };
    let client = RetryClient::new(policy, NO_BUDGET);
    for wait_ms in [1, 50, 1_000, 30_000, 300_000] {
        let wait = Duration::from_millis(wait_ms);
        let asked = RefCell::new(Vec::new());
        let answered = client.run((), Safety::Once, |()| {
            asked.borrow_mut().push(Instant::now());
            let count = asked.borrow().len();
            ready(if count < 4 { Err(Failed::refused("busy").after(wait)) } else { Ok(count) })
        });
        assert_eq!(answered.await.expect("the fourth is answered").attempts, 4);
        for pair in asked.borrow().windows(2) {
            assert!(pair[1] - pair[0] >= wait, "{:?} is before {wait:?}", pair[1] - pair[0]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_thousand_that_are_refused_together_do_not_return_together() {
    let wait = Duration::from_secs(10);
    let client = RetryClient::new(RetryPolicy::default(), NO_BUDGET);
    let start = Instant::now();
    let mut clients = JoinSet::new();
    for _ in 0..1_000 {
        let client = client.clone();
        clients.spawn(async move {
            let mut first = true;
            let answered = client.run((), Safety::Once, |()| {
                ready(if std::mem::take(&mut first) {
                    Err(Failed::refused(()).after(wait))
                } else {
                    Ok(start.elapsed())
                })
            });
            answered.await.expect("the second is answered").value
        });
    }
    let returns = clients.join_all().await;
    assert!(returns.iter().all(|elapsed| *elapsed >= wait), "someone came too early");
    // Half of the wait is the spread: a thousand over 5 s are 100 in half a second if they spread evenly.
    let mut halves_of_seconds = [0_u32; 12];
    for elapsed in &returns {
        halves_of_seconds[((*elapsed - wait).as_millis() / 500) as usize] += 1;
    }
    let most = halves_of_seconds.iter().max().expect("there are some");
    assert!(*most <= 150, "{halves_of_seconds:?}");
    assert!(halves_of_seconds[..10].iter().all(|count| *count >= 50), "{halves_of_seconds:?}");
}

#[tokio::test(start_paused = true)]
async fn without_a_word_from_the_server_waits_vary_within_their_bounds() {
    let policy = RetryPolicy {
        attempts_max: 40,
        deadline: Duration::from_secs(3600),
        ..RetryPolicy::default()
    };
    let client = RetryClient::new(policy, NO_BUDGET);
    let asked = RefCell::new(Vec::new());
    let stopped = client.run((), Safety::Once, |()| {
        asked.borrow_mut().push(Instant::now());
        ready(Err::<(), _>(Failed::unreachable("nobody is there")))
    });
    assert_eq!(stopped.await.expect_err("it is never answered").attempts, 40);
    let asked = asked.borrow();
    let waits: Vec<_> = asked.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let rounding = Duration::from_millis(1);
    assert!(waits.iter().all(|wait| *wait >= policy.backoff.base), "{waits:?}");
    assert!(waits.iter().all(|wait| *wait <= policy.backoff.cap + rounding), "{waits:?}");
    assert!(waits.windows(2).all(|pair| pair[1] <= pair[0] * 3 + rounding), "{waits:?}");
    assert!(waits.iter().any(|wait| *wait > policy.backoff.base * 2), "{waits:?}");
}

#[tokio::test]
async fn a_run_may_move_between_threads() {
    let client = RetryClient::default();
    let run = tokio::spawn(async move {
        let request = String::from("question");
        client
            .run(request, Safety::Once, |request| {
                let request = request.clone();
                async move {
                    tokio::task::yield_now().await;
                    Ok::<_, Failed<()>>(request.len())
                }
            })
            .await
    });
    assert_eq!(run.await.expect("no panic").expect("answered").value, 8);
}
