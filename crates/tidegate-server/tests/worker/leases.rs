//! Executions that are stopped when nobody asks for them any more.

use crate::support::{TestWorker, code, with};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::time::sleep;

#[tokio::test]
async fn nobody_asks_and_it_is_stopped() {
    let worker = TestWorker::start(1);
    worker.execute(with(code("left", "hang"), json!({"lease_ms": 100}))).await.ok();
    worker.until("its slot is free", |capacity| capacity.running == 0).await;
    let view = worker.ended("left").await;
    assert_eq!((&view["state"], &view["reason"]), (&json!("cancelled"), &json!("lease_expired")));
    assert_eq!(worker.executor().counts().leases_expired, 1);
}

#[tokio::test]
async fn asking_renews_it_also_when_the_question_waits_longer_than_the_lease() {
    let worker = TestWorker::start(1);
    worker.execute(with(code("asked", "hang"), json!({"lease_ms": 600}))).await.ok();
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(1_800) {
        let view = worker.get("/executions/asked?wait_ms=60000").await.ok();
        assert_ne!(view["state"], "cancelled", "after {:?}", began.elapsed());
    }
}

/// The holder before must not keep alive, nor shorten, what is its successor's.
#[tokio::test]
async fn a_foreign_fence_renews_nothing() {
    let worker = TestWorker::start(2);
    let started = worker.execute(with(code("own", "hang"), json!({"lease_ms": 400}))).await.ok();
    let other = worker.execute(with(code("foreign", "hang"), json!({"lease_ms": 400}))).await.ok();
    let (own, foreign) = (&started["fence"], &other["fence"]);
    let mut states = (json!(null), json!(null));
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(1_600) {
        states.0 = worker.get(&format!("/executions/own?fence={own}")).await.ok()["state"].clone();
        // Another's fence: it is told, and nothing is renewed.
        states.1 =
            worker.get(&format!("/executions/foreign?fence={own}")).await.ok()["state"].clone();
        sleep(Duration::from_millis(10)).await;
    }
    assert_ne!(own, foreign);
    assert_eq!(states, (json!("running"), json!("cancelled")));
}

#[tokio::test]
async fn without_a_lease_it_runs_to_its_end() {
    let worker = TestWorker::start(1);
    worker.execute(code("alone", "sleep 300ms\nprint done")).await.ok();
    worker.until("it is over", |capacity| capacity.running == 0).await;
    assert_eq!(worker.ended("alone").await["state"], "succeeded");
}

#[tokio::test]
async fn a_lease_that_there_is_not_is_refused() {
    let worker = TestWorker::start(1);
    let lease = |lease_ms| with(code("one", "hang"), json!({"lease_ms": lease_ms}));
    worker.execute(lease(json!(0))).await.refused(422, "bad_lease");
    worker.execute(lease(json!(-1))).await.refused(422, "out_of_range");
    worker.execute(lease(json!(u64::MAX))).await.refused(422, "bad_lease");
    assert_eq!(worker.capacity().await.running, 0);
}
