//! An executor that is about to end.

use crate::support::{LONG, TestWorker, code};
use serde_json::json;
use std::time::Duration;
use tidegate_server::worker::Drained;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

#[tokio::test]
async fn it_takes_nothing_more_and_lets_what_runs_finish() {
    let worker = TestWorker::start(2);
    worker.execute(code("runs", "sleep 2s\nprint done")).await.ok();
    let address = worker.address();
    let executor = worker.executor().clone();
    let draining = spawn_blocking(move || worker.worker.shutdown(LONG));
    let started = timeout(LONG, async {
        while !executor.capacity().draining {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    started.await.unwrap();
    let ask = |method, path: &str, body: String| {
        crate::support::send(address, crate::support::request(method, path, body))
    };
    use http::Method;
    let refused = ask(Method::POST, "/execute", code("new", "hang").to_string()).await;
    let body = refused.refused(503, "draining");
    assert!(body["error"]["retry_after_ms"].as_u64().unwrap() > 0, "until it has ended: {body}");
    let reserve = json!({"eval_id": "new"}).to_string();
    ask(Method::POST, "/reserve", reserve).await.refused(503, "draining");
    let again = ask(Method::POST, "/execute", code("runs", "sleep 2s\nprint done").to_string());
    assert_eq!(again.await.ok()["container_id"], "runs@1", "what it knows it still answers");
    assert_eq!(ask(Method::GET, "/health/ready", String::new()).await.status, 503);
    let mut view = json!({});
    while view["state"] != "succeeded" {
        view = ask(Method::GET, "/executions/runs?wait_ms=20000", String::new()).await.ok();
    }
    assert_eq!(view["output"][0]["text"], "done\n", "whoever asks is told how it ended");
    let drained = timeout(LONG, draining).await.unwrap().unwrap();
    assert_eq!(drained, Drained { stopped: 0, left: 0 });
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn what_does_not_finish_within_the_grace_is_stopped() {
    let worker = TestWorker::start(1);
    worker.execute(code("hangs", "hang")).await.ok();
    let executor = worker.executor().clone();
    let grace = Duration::from_millis(50);
    let drained = spawn_blocking(move || worker.worker.shutdown(grace));
    let drained = timeout(LONG, drained).await.unwrap().unwrap();
    assert_eq!(drained, Drained { stopped: 1, left: 0 });
    let key = "hangs".parse().unwrap();
    let view = executor.execution(&key, None, Duration::ZERO, 0).await.unwrap();
    assert_eq!(view.message, "the executor ends");
    assert_eq!(serde_json::to_value(view.state).unwrap(), "cancelled");
}
