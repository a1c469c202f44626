//! Leases of executions.

use crate::support::{TestWorker, code, mock, slots, with};
use serde_json::json;
use std::time::Duration;
use tidegate_server::tasks::execution::{ExecuteBody, ExecutionState};
use tidegate_server::tasks::executor::Executor;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

fn leased(id: &str, lease_ms: u64) -> ExecuteBody {
    ExecuteBody {
        eval_id: id.to_owned(),
        code: "hang".to_owned(),
        attempt: 1,
        lease_ms: Some(lease_ms),
        ..ExecuteBody::default()
    }
}

#[tokio::test]
async fn an_execution_that_nobody_polls_is_stopped() {
    let worker = TestWorker::start(1);
    worker.execute(with(code("left", "hang"), json!({"lease_ms": 100}))).await.ok();
    worker.until("its slot is free", |capacity| capacity.running == 0).await;
    let view = worker.ended("left").await;
    assert_eq!((&view["state"], &view["reason"]), (&json!("cancelled"), &json!("lease_expired")));
    assert_eq!(worker.executor().counts().leases_expired, 1);
}

/// In virtual time, so that no slow machine polls too late.
#[tokio::test(start_paused = true)]
async fn a_poll_renews_the_lease_even_when_it_waits_longer_than_the_lease() {
    let executor = Executor::start(slots(1), mock(), Handle::current());
    executor.execute(leased("asked", 600)).unwrap();
    let key = "asked".parse().unwrap();
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(60) {
        let view = executor.execution(&key, None, Duration::from_secs(3_600), 0).await.unwrap();
        assert_ne!(view.state, ExecutionState::Cancelled, "after {:?}", began.elapsed());
    }
    sleep(Duration::from_millis(700)).await;
    let view = executor.execution(&key, None, Duration::ZERO, 0).await.unwrap();
    assert_eq!(view.state, ExecutionState::Cancelled, "and then nobody asked");
}

/// An earlier holder must neither renew nor shorten its successor's lease.
#[tokio::test(start_paused = true)]
async fn a_foreign_fence_renews_nothing() {
    let executor = Executor::start(slots(2), mock(), Handle::current());
    let own = executor.execute(leased("own", 400)).unwrap().fence;
    let foreign = executor.execute(leased("foreign", 400)).unwrap().fence;
    assert_ne!(own, foreign);
    let state = async |id: &str| {
        let key = id.parse().unwrap();
        // A poll with another fence gets the state, and renews nothing.
        executor.execution(&key, Some(own), Duration::ZERO, 0).await.unwrap().state
    };
    for _ in 0..100 {
        assert_ne!(state("own").await, ExecutionState::Cancelled);
        state("foreign").await;
        sleep(Duration::from_millis(10)).await;
    }
    let states = (state("own").await, state("foreign").await);
    assert_eq!(states, (ExecutionState::Running, ExecutionState::Cancelled));
    assert_eq!(executor.counts().leases_expired, 1);
}

#[tokio::test]
async fn an_execution_without_a_lease_runs_to_its_end() {
    let worker = TestWorker::start(1);
    worker.execute(code("alone", "sleep 300ms\nprint done")).await.ok();
    worker.until("it is over", |capacity| capacity.running == 0).await;
    assert_eq!(worker.ended("alone").await["state"], "succeeded");
}

#[tokio::test]
async fn an_invalid_lease_is_refused() {
    let worker = TestWorker::start(1);
    let lease = |lease_ms| with(code("one", "hang"), json!({"lease_ms": lease_ms}));
    worker.execute(lease(json!(0))).await.refused(422, "bad_lease");
    worker.execute(lease(json!(-1))).await.refused(422, "out_of_range");
    worker.execute(lease(json!(u64::MAX))).await.refused(422, "bad_lease");
    assert_eq!(worker.capacity().await.running, 0);
}
