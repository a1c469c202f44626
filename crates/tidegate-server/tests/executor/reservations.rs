//! Reservations of slots.

use crate::support::{TestWorker, code, mock, slots, with};
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tidegate_server::tasks::execution::{ExecuteBody, ReserveBody};
use tidegate_server::tasks::executor::{ExecuteError, Executor};
use tokio::runtime::Handle;
use tokio::time::sleep;

fn of(id: &str, ttl: f64) -> Value {
    json!({"eval_id": id, "ttl": ttl})
}

fn committed(id: &str, reserved: &Value) -> Value {
    with(code(id, "hang"), json!({"reservation_id": reserved["reservation_id"]}))
}

#[tokio::test]
async fn a_reservation_holds_a_slot_and_a_repeated_commit_gets_the_same_response() {
    let worker = TestWorker::start(1);
    let reserved = worker.reserve(of("one", 60.0)).await.ok();
    assert!(reserved["reservation_id"].is_string());
    assert!((59_000..=60_000).contains(&reserved["expires_in_ms"].as_u64().unwrap()));
    let capacity = worker.capacity().await;
    assert_eq!((capacity.running, capacity.reserved, capacity.available_slots), (0, 1, 0));
    worker.execute(code("other", "hang")).await.refused(503, "full");
    let first = worker.execute(committed("one", &reserved)).await.ok();
    assert_eq!(first["fence"], reserved["fence"]);
    assert_eq!(
        worker.execute(committed("one", &reserved)).await.ok(),
        first,
        "the same body again"
    );
    let capacity = worker.capacity().await;
    assert_eq!((capacity.running, capacity.reserved), (1, 0));
    worker.reserve(of("one", 60.0)).await.refused(409, "started");
}

#[tokio::test]
async fn a_repeated_request_gets_the_same_reservation() {
    let worker = TestWorker::start(2);
    let first = worker.reserve(of("one", 60.0)).await.ok();
    let again = worker.reserve(of("one", 60.0)).await.ok();
    assert_eq!(again["reservation_id"], first["reservation_id"]);
    assert_eq!(worker.capacity().await.reserved, 1);
}

#[tokio::test]
async fn a_deleted_reservation_is_named_and_frees_its_slot() {
    let worker = TestWorker::start(1);
    let reserved = worker.reserve(of("one", 30.0)).await.ok();
    assert_eq!(worker.delete("/executions/one").await.ok()["was"], "reserved");
    assert_eq!(worker.capacity().await.available_slots, 1);
    worker.execute(committed("one", &reserved)).await.refused(409, "cancelled");
    assert_eq!(worker.delete("/executions/one").await.ok()["was"], "unknown");
}

/// No request comes meanwhile: the executor's own timer must free the slot.
#[tokio::test]
async fn an_unused_reservation_expires_and_frees_its_slot() {
    let worker = TestWorker::start(1);
    let asked = Instant::now();
    let reserved = worker.reserve(of("late", 0.3)).await.ok();
    worker.until("it is free", |capacity| capacity.available_slots == 1).await;
    assert!(asked.elapsed().as_millis() >= 300, "not before its time");
    worker.execute(committed("late", &reserved)).await.refused(410, "reservation_gone");
    assert_eq!(worker.executor().counts().reservations_expired, 1);
    worker.execute(code("other", "hang")).await.ok();
    worker.execute(committed("late", &reserved)).await.refused(410, "reservation_gone");
}

/// In virtual time, so that no slow machine asks after the expiry.
#[tokio::test(start_paused = true)]
async fn a_reserved_slot_is_refused_to_others() {
    let executor = Executor::start(slots(1), mock(), Handle::current());
    let late = ReserveBody { eval_id: "late".to_owned(), ttl: 1.5, attempt: 1 };
    executor.reserve(&late).unwrap();
    let other = || {
        let (eval_id, code) = ("other".to_owned(), "hang".to_owned());
        executor.execute(ExecuteBody { eval_id, code, attempt: 1, ..ExecuteBody::default() })
    };
    for wait_ms in [0, 700, 700] {
        sleep(Duration::from_millis(wait_ms)).await;
        assert!(matches!(other(), Err(ExecuteError::Full { .. })));
    }
    sleep(Duration::from_millis(102)).await;
    assert!(other().is_ok());
}

/// A lost response must not run two executions on one slot: another's reservation counts as none.
#[tokio::test]
async fn the_reservation_of_another_execution_is_gone() {
    let worker = TestWorker::start(3);
    let reserved = worker.reserve(of("one", 60.0)).await.ok();
    worker.execute(committed("two", &reserved)).await.refused(410, "reservation_gone");
    let made_up = with(code("three", "hang"), json!({"reservation_id": "r-1"}));
    worker.execute(made_up).await.refused(410, "reservation_gone");
    let nonsense = with(code("three", "hang"), json!({"reservation_id": "me"}));
    worker.execute(nonsense).await.refused(410, "reservation_gone");
    assert_eq!(worker.capacity().await.running, 0);
}

#[tokio::test]
async fn an_execution_without_its_reservation_id_uses_its_reserved_slot() {
    let worker = TestWorker::start(1);
    let reserved = worker.reserve(of("one", 60.0)).await.ok();
    assert_eq!(worker.execute(code("one", "hang")).await.ok()["fence"], reserved["fence"]);
}

#[tokio::test]
async fn an_invalid_ttl_is_refused() {
    let worker = TestWorker::start(1);
    for ttl in [json!(0), json!(-1), json!(3600.5), json!(1e300)] {
        worker.reserve(json!({"eval_id": "one", "ttl": ttl})).await.refused(422, "bad_ttl");
    }
    worker.reserve(json!({"eval_id": "one", "ttl": "30"})).await.refused(422, "wrong_type");
    worker.reserve(json!({"eval_id": "one", "attempt": 0})).await.refused(422, "bad_attempt");
    worker.reserve(json!({"eval_id": "a b"})).await.refused(400, "bad_id");
    assert_eq!(worker.capacity().await.reserved, 0);
}
