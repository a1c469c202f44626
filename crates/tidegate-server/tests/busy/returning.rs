//! Clients that are refused and return when they were told to.

use crate::support::{Client, TestGateway};
use crate::traffic::without_queue;
use crate::upstream::Upstream;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::sleep;

const CLIENTS: u64 = 6;
const REQUESTS_EACH: u64 = 8;

/// The rival: of fixed delays, about the best for these clients and slots (`tidegate_sim::returns`).
const POLLING: Duration = Duration::from_millis(50);

/// Sends all requests of all clients, and returns the time and the attempts. Without a delay of their own, clients
/// wait for exactly the advised time.
async fn run(address: SocketAddr, delay: Option<Duration>) -> (Duration, u64) {
    let attempts = Arc::new(AtomicU64::new(0));
    let (start, mut clients) = (Instant::now(), JoinSet::new());
    for _ in 0..CLIENTS {
        let attempts = Arc::clone(&attempts);
        clients.spawn(async move {
            for _ in 0..REQUESTS_EACH {
                loop {
                    attempts.fetch_add(1, Ordering::Relaxed);
                    let answer = Client::new(address).get("/").await;
                    if answer.status == 200 {
                        break;
                    }
                    assert_eq!(answer.status, 503, "{}", answer.text());
                    let ms = answer.header("retry-after-ms").parse().unwrap();
                    sleep(delay.unwrap_or(Duration::from_millis(ms))).await;
                }
            }
        });
    }
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
    (start.elapsed(), attempts.load(Ordering::Relaxed))
}

/// The machine may hold up either run, so the best of three ratios counts.
async fn assert_within_1_3(start: impl Fn(SocketAddr) -> TestGateway) {
    let mut ratios = Vec::new();
    for _ in 0..3 {
        let upstream = Upstream::start().await.taking(Duration::from_millis(200));
        let (polling, _) = run(start(upstream.address).address, Some(POLLING)).await;
        let gateway = start(upstream.address);
        let (honoured, attempts) = run(gateway.address, None).await;
        assert_eq!(upstream.peak(), 3, "the limit binds");
        assert!(attempts <= 10 * CLIENTS * REQUESTS_EACH, "{attempts} attempts");
        ratios.push(honoured.as_secs_f64() / polling.as_secs_f64());
        if ratios.last().is_some_and(|ratio| *ratio <= 1.3) {
            return;
        }
    }
    panic!("{ratios:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_the_limit_of_an_upstream_the_advice_is_within_1_3_times_the_best_polling() {
    assert_within_1_3(|upstream| without_queue("[routing]\nlimit = 3\n", &[upstream])).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn at_an_admission_limit_the_advice_is_within_1_3_times_the_best_polling() {
    let limits =
        "[admission]\nglobal_limit = 20\nhigh_limit = 3\nnormal_limit = 3\nlow_limit = 3\n";
    assert_within_1_3(|upstream| TestGateway::start(limits, &[upstream])).await;
}
