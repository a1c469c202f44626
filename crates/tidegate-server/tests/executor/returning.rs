//! Clients that are refused and return when they were told to.

use crate::support::{Answer, TestWorker, code};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::sleep;

const CLIENTS: u64 = 6;
const TASKS_EACH: u64 = 8;
const SLOTS: u32 = 3;

/// The rival: of fixed delays, about the best for these clients and slots (`tidegate_sim::returns`).
const POLLING: Duration = Duration::from_millis(50);

/// Runs all tasks of all clients, and returns the time and the attempts. Without a delay of their own, clients
/// wait for exactly the advised time.
async fn run(delay: Option<Duration>) -> (Duration, u64) {
    let worker = Arc::new(TestWorker::start(SLOTS));
    let attempts = Arc::new(AtomicU64::new(0));
    let (start, mut clients) = (Instant::now(), JoinSet::new());
    for client in 0..CLIENTS {
        let (worker, attempts) = (Arc::clone(&worker), Arc::clone(&attempts));
        clients.spawn(async move {
            for task in 0..TASKS_EACH {
                let id = format!("t{client}-{task}");
                loop {
                    attempts.fetch_add(1, Ordering::Relaxed);
                    let answer = worker.execute(code(&id, "sleep 200ms")).await;
                    if answer.status == 200 {
                        break;
                    }
                    answer.refused(503, "full");
                    sleep(delay.unwrap_or_else(|| advised(&answer))).await;
                }
                worker.ended(&id).await;
            }
        });
    }
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
    (start.elapsed(), attempts.load(Ordering::Relaxed))
}

/// The wait as SDKs read it.
fn advised(answer: &Answer) -> Duration {
    let ms = answer.headers["retry-after-ms"].to_str().unwrap().parse().unwrap();
    assert_eq!(answer.json()["error"]["retry_after_ms"], ms);
    Duration::from_millis(ms)
}

/// The machine may hold up either run, so the better of three ratios counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_honour_the_advice_are_done_within_1_3_times_the_best_polling() {
    let mut ratios = Vec::new();
    for _ in 0..3 {
        let (polling, _) = run(Some(POLLING)).await;
        let (honoured, attempts) = run(None).await;
        assert!(attempts <= 10 * CLIENTS * TASKS_EACH, "{attempts} attempts");
        ratios.push(honoured.as_secs_f64() / polling.as_secs_f64());
        if ratios.last().is_some_and(|ratio| *ratio <= 1.3) {
            return;
        }
    }
    panic!("{ratios:?}");
}
