use super::support::{CHAT, TestMock, chat, fast, slow, streamed};
use http::StatusCode;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tidegate_testkit::mock::MockConfig;

async fn set(mock: &TestMock, change: Value) {
    let answer = mock.post("/mock/fault", &change).await;
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
}

#[tokio::test]
async fn they_are_off_unless_they_are_switched_on() {
    let mock = TestMock::start(MockConfig { faults: false, ..fast() });
    let answer = mock.post("/mock/fault", &json!({"failure_rate": 1.0})).await;
    assert_eq!(answer.status, StatusCode::NOT_FOUND);
    assert!(answer.text().contains("--faults"), "{answer:?}");
    assert_eq!(mock.post(CHAT, &chat(1)).await.status, StatusCode::OK);
}

#[tokio::test]
async fn they_are_typed_partial_shown_and_ended() {
    let mock = TestMock::start(fast());
    let wrong = mock.post("/mock/fault", &json!({"failure_rat": 1.0})).await;
    assert_eq!(wrong.status, StatusCode::BAD_REQUEST);
    assert!(wrong.text().contains("failure_rat"), "{wrong:?}");
    set(&mock, json!({"failure_rate": 1.0})).await;
    set(&mock, json!({"added_latency_ms": 1})).await;
    let shown = mock.get("/mock/fault").await.json();
    assert_eq!((&shown["failure_rate"], &shown["added_latency_ms"]), (&json!(1.0), &json!(1)));
    let failed = mock.post(CHAT, &chat(1)).await;
    assert_eq!(failed.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(failed.json()["error"]["code"], "injected_fault");
    assert_eq!(mock.get("/health").await.status, StatusCode::OK);
    mock.send("DELETE", "/mock/fault", &[], "").await;
    assert_eq!(mock.post(CHAT, &chat(1)).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_part_of_the_requests_fails() {
    let mock = TestMock::start(fast());
    set(&mock, json!({"failure_rate": 0.5})).await;
    let mut failed = 0;
    for _ in 0..40 {
        failed += usize::from(mock.post(CHAT, &chat(1)).await.status.is_server_error());
    }
    // The chance is seeded: the count is the same in every run.
    assert!((10..=30).contains(&failed), "{failed}");
}

#[tokio::test]
async fn added_latency_is_added() {
    let mock = TestMock::start(fast());
    set(&mock, json!({"added_latency_ms": 300})).await;
    let start = Instant::now();
    mock.post(CHAT, &chat(1)).await;
    assert!(start.elapsed() >= Duration::from_millis(300));
}

#[tokio::test]
async fn a_frozen_engine_takes_requests_and_answers_them_later() {
    let mock = TestMock::start_observable(fast());
    set(&mock, json!({"frozen": true})).await;
    let waiting = mock.begin("POST", CHAT, &[], &streamed(5).to_string()).await;
    assert_eq!(mock.gauge("waiting_requests", 0).await, 1.0);
    assert_eq!(mock.gauge("running_requests", 0).await, 0.0);
    set(&mock, json!({"frozen": false})).await;
    let answer = super::support::Answer::read(waiting).await;
    assert_eq!(answer.events().len(), 1 + 5 + 1);
}

#[tokio::test]
async fn stale_reports_do_not_change_and_a_server_that_is_not_ready_has_no_blocks() {
    let mock = TestMock::start_observable(slow());
    set(&mock, json!({"reports": "stale"})).await;
    let _running = mock.begin("POST", CHAT, &[], &streamed(5).to_string()).await;
    assert_eq!(mock.gauge("running_requests", 0).await, 0.0);
    assert_eq!(mock.gauge("kv_total_blocks", 0).await, 256.0);
    set(&mock, json!({"reports": "not_ready"})).await;
    assert_eq!(mock.gauge("kv_total_blocks", 0).await, 0.0);
    set(&mock, json!({"reports": "live"})).await;
    assert_eq!(mock.gauge("running_requests", 0).await, 1.0);
}
