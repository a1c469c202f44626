//! What a dead server sees of many clients. Time is virtual; `over_loopback` has the same with sockets.

use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tidegate::retry::{
    BudgetLimits, BudgetUse, Failed, GiveUpReason, RetryClient, RetryPolicy, Safety,
};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

/// So many requests a second, each its own task, for so many seconds, against a server that refuses all.
async fn storm(client: &RetryClient, per_s: u64, seconds: u64) -> u64 {
    let asked = Arc::new(AtomicU64::new(0));
    let mut requests = JoinSet::new();
    for _ in 0..per_s * seconds {
        let (client, asked) = (client.clone(), Arc::clone(&asked));
        requests.spawn(async move {
            let run = client.run((), Safety::Idempotent, |()| {
                asked.fetch_add(1, Ordering::Relaxed);
                ready(Err::<(), _>(Failed::unreachable(())))
            });
            run.await.expect_err("nobody is there").why
        });
        sleep(Duration::from_micros(1_000_000 / per_s)).await;
    }
    requests.join_all().await;
    asked.load(Ordering::Relaxed)
}

#[tokio::test(start_paused = true)]
async fn a_dead_server_sees_the_first_tries_and_a_fifth_more() {
    let client = RetryClient::default();
    let (per_s, seconds) = (500, 30);
    let start = Instant::now();
    let asked = storm(&client, per_s, seconds).await;
    let first = per_s * seconds;
    // The floor is one a second, and ten at once: a window's worth may be taken as it begins.
    let most = first + first / 5 + start.elapsed().as_secs() + 1 + 10;
    assert!(asked <= most, "{asked} of {first}");
    assert!(asked >= first + first / 10, "{asked} of {first}: the budget is there to be used");
}

#[tokio::test(start_paused = true)]
async fn without_a_budget_the_same_server_sees_every_try_there_is() {
    let most = BudgetLimits { ratio: 10.0, floor_per_s: 1e6, ..BudgetLimits::default() };
    let asked = storm(&RetryClient::new(RetryPolicy::default(), most), 500, 30).await;
    assert_eq!(asked, 500 * 30 * 5, "five times the load, when it can do least");
}

#[tokio::test(start_paused = true)]
async fn a_spent_budget_recovers_by_itself() {
    // The floor alone: no request pays for the next retry.
    let limits = BudgetLimits { ratio: 0.0, ..BudgetLimits::default() };
    let client = RetryClient::new(RetryPolicy::default(), limits);
    let dead = |client: RetryClient| async move {
        let run = client.run((), Safety::Once, |()| ready(Err::<(), _>(Failed::unreachable(()))));
        run.await.expect_err("nobody is there")
    };
    let mut spent = dead(client.clone()).await;
    while spent.why != GiveUpReason::Budget {
        spent = dead(client.clone()).await;
    }
    // Requests themselves are never refused: the first try is always made.
    assert_eq!(dead(client.clone()).await.attempts, 1);
    sleep(Duration::from_secs(10)).await;
    let quiet = BudgetUse { requests: 0, retries: 0, allowed: 10 };
    assert_eq!(client.budget_use(), quiet, "all is forgotten after a window");
    assert_eq!(dead(client.clone()).await.why, GiveUpReason::Attempts);
}

#[tokio::test(start_paused = true)]
async fn clones_share_the_budget_whatever_their_policy() {
    let client = RetryClient::default();
    let other = client.with_policy(RetryPolicy { attempts_max: 2, ..RetryPolicy::default() });
    let run = other.run((), Safety::Once, |()| ready(Err::<(), _>(Failed::refused(()))));
    run.await.expect_err("it is refused");
    assert_eq!(client.budget_use().retries, 1);
}
