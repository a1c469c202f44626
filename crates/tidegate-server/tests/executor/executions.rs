//! Polling, output and cancellation of executions.

use crate::support::{LONG, TestWorker, code, mock, slots, with};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tidegate_server::tasks::executor::ExecutorConfig;

fn text(view: &Value, stream: &str) -> String {
    let chunks = view["output"].as_array().unwrap().iter();
    let own = chunks.filter(|chunk| chunk["stream"] == stream);
    own.map(|chunk| chunk["text"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_poll_has_the_ending_and_the_output() {
    let worker = TestWorker::start(3);
    worker.execute(code("good", "print hello\nwarn careful\nprint bye")).await.ok();
    worker.execute(code("bad", "print oh\nfail 3")).await.ok();
    worker.execute(with(code("late", "hang"), json!({"timeout_ms": 20}))).await.ok();
    let good = worker.ended("good").await;
    assert_eq!((&good["state"], &good["reason"]), (&json!("succeeded"), &json!("exit")));
    assert_eq!((&good["id"], &good["attempt"]), (&json!("good@1"), &json!(1)));
    assert_eq!(good["exit_code"], 0);
    assert_eq!(
        (text(&good, "stdout"), text(&good, "stderr")),
        ("hello\nbye\n".into(), "careful\n".into())
    );
    let bad = worker.ended("bad@1").await;
    assert_eq!((&bad["state"], &bad["exit_code"]), (&json!("failed"), &json!(3)));
    let late = worker.ended("late").await;
    assert_eq!((&late["state"], &late["reason"]), (&json!("failed"), &json!("timeout")));
    assert!(late["ran_ms"].as_u64().unwrap() >= 20);
    worker.get("/executions/never").await.refused(404, "unknown_execution");
}

#[tokio::test]
async fn a_long_poll_returns_on_a_change_and_not_before() {
    let worker = TestWorker::start(1);
    worker.execute(code("one", "print a\nsleep 400ms\nprint b\nsleep 400ms")).await.ok();
    let mut seen = String::new();
    let (mut next, mut polls) = (0, 0);
    let began = Instant::now();
    let last = loop {
        let path = format!("/executions/one?wait_ms=20000&after={next}");
        let view = worker.get(&path).await.ok();
        seen += &text(&view, "stdout");
        next = view["next"].as_u64().unwrap();
        polls += 1;
        if view["state"] == "succeeded" {
            break view;
        }
    };
    assert_eq!(seen, "a\nb\n", "each byte once");
    assert!(polls <= 5, "{polls}: it was held back while there was nothing new");
    assert!(began.elapsed() < LONG, "and it was not held to its end");
    assert_eq!(last["next"], 4);
    let again = worker.get("/executions/one?wait_ms=60000&after=4").await.ok();
    assert_eq!(text(&again, "stdout"), "", "what is over is told at once");
    assert!(began.elapsed() < LONG);
}

#[tokio::test]
async fn a_long_poll_without_a_change_returns_the_state() {
    let worker = TestWorker::start(1);
    worker.execute(code("one", "hang")).await.ok();
    worker.until("it runs", |capacity| capacity.running == 1).await;
    // The change from starting to running also ends a poll.
    worker.get("/executions/one?wait_ms=50").await.ok();
    let began = Instant::now();
    let view = worker.get("/executions/one?wait_ms=100").await.ok();
    assert_eq!(view["state"], "running");
    assert!(began.elapsed() >= Duration::from_millis(100));
}

#[tokio::test]
async fn output_is_cut_at_its_limit_and_ends_the_task() {
    let config = ExecutorConfig { output_bytes_max: 1_000, ..slots(1) };
    let worker = TestWorker::with(config, mock());
    worker.execute(code("loud", "fill 100000000\nhang")).await.ok();
    let view = worker.ended("loud").await;
    assert_eq!((&view["state"], &view["reason"]), (&json!("failed"), &json!("output_limit")));
    assert_eq!(text(&view, "stdout").len(), 1_000);
    assert_eq!(view["output_cut"], true);
    worker.execute(code("quiet", "fill 1000")).await.ok();
    let view = worker.ended("quiet").await;
    assert_eq!((&view["state"], &view["output_cut"]), (&json!("succeeded"), &json!(false)));
}

#[tokio::test]
async fn a_deleted_running_execution_stops_and_frees_its_slot() {
    let worker = TestWorker::start(1);
    worker.execute(code("one", "hang")).await.ok();
    assert_eq!(worker.delete("/executions/one").await.ok()["was"], "stopping");
    let view = worker.ended("one").await;
    assert_eq!((&view["state"], &view["reason"]), (&json!("cancelled"), &json!("cancelled")));
    assert_eq!(worker.delete("/executions/one").await.ok(), json!({"id": "one@1", "was": "ended"}));
    assert_eq!(worker.capacity().await.available_slots, 1);
    assert_eq!(worker.ended("one").await, view, "cancelling what is over changes nothing");
}

#[tokio::test]
async fn an_execution_deleted_before_it_arrives_is_refused() {
    let worker = TestWorker::start(1);
    assert_eq!(worker.delete("/executions/early@2").await.ok()["was"], "unknown");
    let second = with(code("early", "sleep 1ms"), json!({"attempt": 2}));
    worker.execute(second.clone()).await.refused(409, "cancelled");
    worker.reserve(json!({"eval_id": "early", "attempt": 2})).await.refused(409, "cancelled");
    worker.get("/executions/early@2").await.refused(404, "unknown_execution");
    worker.execute(code("early", "sleep 1ms")).await.ok();
    worker.ended("early").await;
    worker.reserve(json!({"eval_id": "held", "ttl": 60})).await.ok();
    assert_eq!(worker.delete("/executions/held").await.ok()["was"], "reserved");
    assert_eq!(worker.capacity().await.reserved, 0, "what was kept for it is free");
}

#[tokio::test]
async fn empty_executions_are_fast() {
    use tidegate_server::tasks::executor::{MockRunner, Runner};
    let runner = Runner::Mock(MockRunner::new(Duration::ZERO, Vec::new()));
    let worker = TestWorker::with(slots(1), runner);
    for nth in 0..200 {
        worker.execute(code(&format!("t{nth}"), "x = 1")).await.ok();
        worker.ended(&format!("t{nth}")).await;
    }
    assert_eq!(worker.executor().counts().ended_total(), 200);
}
