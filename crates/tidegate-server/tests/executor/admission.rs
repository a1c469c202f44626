//! Admission to slots.

use crate::support::{TestWorker, code, with};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tidegate_server::tasks::execution::{ExecuteBody, ReserveBody};
use tidegate_server::tasks::executor::ExecuteError;
use tokio::task::JoinSet;

#[tokio::test]
async fn two_hundred_at_once_on_32_slots_are_exactly_32() {
    let worker = Arc::new(TestWorker::start(32));
    let mut asking = JoinSet::new();
    for nth in 0..200 {
        let worker = Arc::clone(&worker);
        asking.spawn(async move { worker.execute(code(&format!("t{nth}"), "hang")).await });
    }
    let answers = asking.join_all().await;
    let taken = answers.iter().filter(|answer| answer.status == 200).count();
    let refused = answers.iter().filter(|answer| answer.status == 503).count();
    assert_eq!((taken, refused), (32, 168));
    let capacity = worker.capacity().await;
    assert_eq!((capacity.running, capacity.available_slots), (32, 0));
    assert!(!capacity.can_accept);
    assert_eq!(capacity.executions.unwrap().len(), 32);
}

/// Calls within one process, from several threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_limit_is_exact_between_threads() {
    let worker = TestWorker::start(8);
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let executor = worker.executor().clone();
            std::thread::spawn(move || {
                let want = |nth: u32| ExecuteBody {
                    eval_id: format!("t{thread}-{nth}"),
                    code: "hang".to_owned(),
                    attempt: 1,
                    ..ExecuteBody::default()
                };
                (0..50).filter(|nth| executor.execute(want(*nth)).is_ok()).count()
            })
        })
        .collect();
    let taken: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    assert_eq!(taken, 8);
}

#[tokio::test]
async fn a_full_executor_responds_503_with_retry_advice() {
    let worker = TestWorker::start(1);
    worker.execute(code("holder", "hang")).await.ok();
    let answer = worker.execute(code("other", "hang")).await;
    let body = answer.refused(503, "full");
    assert_eq!(body["detail"], "Executor at capacity");
    let exact_ms = body["error"]["retry_after_ms"].as_u64().unwrap();
    let seconds: u64 = answer.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert_eq!(seconds, exact_ms.div_ceil(1000).max(1), "whole seconds, rounded up");
    assert_eq!(answer.headers["retry-after-ms"], exact_ms.to_string());
    let reserve = worker.reserve(json!({"eval_id": "other", "ttl": 5})).await;
    assert_eq!(reserve.refused(503, "full")["detail"], "Executor at capacity");
}

/// Shorter executions have shorter retry advice.
#[tokio::test(start_paused = true)]
async fn retry_advice_follows_the_measured_run_times() {
    use crate::support::{mock, slots};
    use tidegate_server::tasks::executor::Executor;
    let told = async |takes_ms: u64| {
        let runtime = tokio::runtime::Handle::current();
        let executor = Executor::start(slots(1), mock(), runtime);
        let (mut last, mut nth) = (Duration::ZERO, 0);
        for _ in 0..200 {
            let code = format!("sleep {takes_ms}ms");
            let body =
                ExecuteBody { eval_id: format!("t{nth}"), code, attempt: 1, ..Default::default() };
            match executor.execute(body) {
                Ok(_) => nth += 1,
                Err(ExecuteError::Full { retry_after }) => last = retry_after,
                Err(error) => panic!("{error}"),
            }
            tokio::time::sleep(Duration::from_millis(takes_ms * 3 / 5)).await;
        }
        last
    };
    let (fast, slow) = (told(200).await, told(8_000).await);
    // One slot has four turns in a service time, with jitter of a quarter.
    let part = |wait: Duration, takes_ms: u64| wait.as_secs_f64() * 4e3 / takes_ms as f64;
    assert!((0.7..=1.3).contains(&part(fast, 200)), "{fast:?}");
    assert!((0.7..=1.3).contains(&part(slow, 8_000)), "{slow:?}");
}

#[tokio::test]
async fn a_repeated_request_starts_once_while_it_runs_and_after() {
    let worker = TestWorker::start(2);
    let body = code("one", "print hello\nhang");
    let first = worker.execute(body.clone()).await.ok();
    assert_eq!(first["status"], "started");
    assert_eq!(first["container_id"], "one@1");
    assert_eq!(worker.execute(body.clone()).await.ok(), first, "while it runs");
    assert_eq!(worker.capacity().await.running, 1);
    worker.delete("/executions/one").await.ok();
    assert_eq!(worker.ended("one").await["state"], "cancelled");
    assert_eq!(worker.execute(body.clone()).await.ok(), first, "after it has ended");
    assert_eq!(worker.executor().counts().started, 1);
    assert_eq!(worker.executor().counts().repeated, 2);
    let short = code("two", "print hello");
    let first = worker.execute(short.clone()).await.ok();
    assert_eq!(worker.ended("two").await["state"], "succeeded");
    assert_eq!(worker.execute(short).await.ok(), first, "after it has ended by itself");
    assert_eq!((worker.executor().counts().started, worker.executor().counts().repeated), (2, 3));
    worker.execute(with(body, json!({"attempt": 2}))).await.ok();
    assert_eq!(worker.executor().counts().started, 3, "another attempt is another execution");
}

#[tokio::test]
async fn a_lost_reply_that_is_retried_is_the_same_execution_even_when_full() {
    use tokio::io::AsyncWriteExt;
    let worker = TestWorker::start(1);
    let body = code("lost", "hang").to_string();
    let mut tcp = tokio::net::TcpStream::connect(worker.address()).await.unwrap();
    let head =
        format!("POST /execute HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
    tcp.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    worker.until("it runs", |capacity| capacity.running == 1).await;
    drop(tcp);
    let again = worker.execute(code("lost", "hang")).await.ok();
    assert_eq!(again["container_id"], "lost@1");
    assert_eq!(worker.executor().counts().started, 1);
}

#[tokio::test]
async fn another_body_under_the_same_id_is_a_conflict() {
    let worker = TestWorker::start(4);
    worker.execute(code("one", "hang")).await.ok();
    worker.execute(code("one", "sleep 1ms")).await.refused(409, "conflict");
    for more in [
        json!({"language": "other"}),
        json!({"args": ["x"]}),
        json!({"env": {"A": "b"}}),
        json!({"timeout_ms": 5}),
    ] {
        worker.execute(with(code("one", "hang"), more)).await.refused(409, "conflict");
    }
    assert_eq!(worker.capacity().await.running, 1);
}

#[tokio::test]
async fn fences_rise_over_all_grants_and_restarts() {
    let mut fences = Vec::new();
    for life in 0..2 {
        let worker = TestWorker::start(3);
        for nth in 0..2 {
            let id = format!("t{life}-{nth}");
            let body = ReserveBody { eval_id: format!("r{life}-{nth}"), ttl: 0.001, attempt: 1 };
            fences.push(worker.executor().reserve(&body).unwrap().fence);
            fences
                .push(worker.execute(code(&id, "sleep 1ms")).await.ok()["fence"].as_u64().unwrap());
            worker.ended(&id).await;
        }
    }
    assert!(fences.is_sorted_by(|a, b| a < b), "{fences:?}");
}

#[tokio::test]
async fn a_runner_that_panics_frees_its_slot() {
    let worker = TestWorker::start(1);
    worker.execute(code("breaks", "crash")).await.ok();
    let view = worker.ended("breaks").await;
    assert_eq!((&view["state"], &view["reason"]), (&json!("cancelled"), &json!("executor_lost")));
    worker.execute(code("next", "sleep 1ms")).await.ok();
    assert_eq!(worker.ended("next").await["state"], "succeeded");
}
