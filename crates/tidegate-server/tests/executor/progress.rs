//! Progress of executions, over HTTP and inside of the process.

use crate::support::{Answer, LONG, TestWorker, code};
use http::Method;
use serde_json::{Value, json};
use std::time::Instant;
use tidegate_server::tasks::execution::ExecutionView;
use tidegate_server::tasks::executor::ProgressRefused;
use tokio::time::timeout;

async fn report(worker: &TestWorker, id: &str, body: &Value) -> Answer {
    worker.ask(Method::POST, &format!("/executions/{id}/progress"), body.to_string()).await
}

#[tokio::test]
async fn posted_progress_is_merged_and_returned() {
    let worker = TestWorker::start(1);
    worker.execute(code("one", "hang")).await.ok();
    let view = worker.get("/executions/one").await.ok();
    assert!(view.get("progress").is_none() && view.get("progress_version").is_none(), "{view}");
    let first = json!({"counters": {"rows": 1200}, "gauges": {"loss": 0.5}, "message": "epoch 3"});
    let accepted = json!({"id": "one@1", "progress_version": 1, "refused_names": 0});
    assert_eq!(report(&worker, "one", &first).await.ok(), accepted);
    assert_eq!(report(&worker, "one@1", &first).await.ok(), accepted, "a repeated report");
    let second = json!({"counters": {"rows": 7, "files": 2}, "done": 3, "total": 10});
    assert_eq!(report(&worker, "one%401", &second).await.ok()["progress_version"], 2);
    let view = worker.get("/executions/one").await.ok();
    let expected = json!({"counters": {"files": 2, "rows": 1200}, "gauges": {"loss": 0.5},
                          "message": "epoch 3", "done": 3, "total": 10});
    assert_eq!((&view["progress"], &view["progress_version"]), (&expected, &json!(2)));
}

#[tokio::test]
async fn progress_that_can_not_be_used_says_why() {
    let worker = TestWorker::start(1);
    worker.execute(code("one", "hang")).await.ok();
    report(&worker, "never", &json!({"done": 1})).await.refused(404, "unknown_execution");
    report(&worker, "a%20b", &json!({"done": 1})).await.refused(400, "bad_id");
    let wrong = report(&worker, "one", &json!({"counters": {"rows": -1}})).await;
    wrong.refused(422, "wrong_type");
    let wrong = report(&worker, "one", &json!({"counter": {"rows": 1}})).await;
    let body = wrong.refused(422, "wrong_type");
    assert!(body["detail"].as_str().unwrap().contains("unknown field `counter`"), "{body}");
    let wrong = report(&worker, "one", &json!({"gauges": {"two words": 1}})).await;
    wrong.refused(422, "progress_name");
    let many: serde_json::Map<_, _> = (0..33).map(|n| (format!("c{n}"), json!(1))).collect();
    let wrong = report(&worker, "one", &json!({ "counters": many })).await;
    wrong.refused(422, "progress_too_many");
    let path = "/executions/one/progress";
    worker.ask(Method::POST, path, "nope").await.refused(400, "not_json");
    worker.ask(Method::POST, path, vec![b' '; 70_000]).await.refused(413, "body_too_large");
    worker.ask(Method::GET, path, "").await.refused(405, "method");
    worker.ask(Method::POST, "/executions/one/other", "{}").await.refused(404, "unknown_path");
    let view = worker.get("/executions/one").await.ok();
    assert!(view.get("progress").is_none(), "nothing of them was used: {view}");
    worker.delete("/executions/one").await.ok();
    worker.ended("one").await;
    report(&worker, "one", &json!({"done": 1})).await.refused(409, "ended");
}

#[tokio::test]
async fn a_long_poll_returns_on_progress_when_it_is_asked_to() {
    let worker = TestWorker::start(2);
    worker.execute(code("one", "sleep 100ms\nprogress {\"done\": 1}\nhang")).await.ok();
    let began = Instant::now();
    // The change from starting to running also ends a poll.
    let view = loop {
        let view = worker.get("/executions/one?wait_ms=60000&progress=0").await.ok();
        if view.get("progress").is_some() {
            break view;
        }
    };
    assert_eq!((&view["progress"], &view["progress_version"]), (&json!({"done": 1}), &json!(1)));
    assert!(began.elapsed() < LONG);
    // Others are not woken: this one waits for its whole time.
    worker.execute(code("two", "hang")).await.ok();
    worker.until("both run", |capacity| capacity.running == 2).await;
    worker.get("/executions/two?wait_ms=50").await.ok();
    let path = "/executions/two?wait_ms=300";
    let began = Instant::now();
    let report = json!({"done": 1});
    let (view, _) = tokio::join!(worker.get(path), self::report(&worker, "two", &report));
    assert!(began.elapsed().as_millis() >= 300, "{:?}", view.ok());
    worker.get("/executions/two?progress=x").await.refused(400, "bad_query");
}

#[tokio::test]
async fn progress_is_awaited_inside_of_the_process_and_stays_after_the_end() {
    let worker = TestWorker::start(1);
    worker
        .execute(code("one", "progress {\"done\": 1}\nsleep 50ms\nprogress {\"done\": 2}"))
        .await
        .ok();
    let key = "one@1".parse().unwrap();
    let progress = worker.executor().progress(&key).unwrap();
    let mut seen = Vec::new();
    let all = async {
        while seen.last() != Some(&2) {
            let after = seen.last().copied().unwrap_or(0);
            let newest = progress.changed(after).await;
            assert!(newest.version > after, "it waits for something new");
            seen.push(newest.version);
        }
    };
    timeout(LONG, all).await.unwrap();
    let view = worker.ended("one").await;
    assert_eq!(view["progress"], json!({"done": 2}));
    let report = tidegate::progress::parse_line(b"{\"done\": 3}").unwrap();
    let refused = worker.executor().report_progress(&key, &report);
    assert_eq!(refused, Err(ProgressRefused::Ended));
    assert!(worker.executor().progress(&"two@1".parse().unwrap()).is_none());
}

#[test]
fn invalid_progress_of_a_foreign_executor_counts_as_none() {
    let view = |progress: Value| {
        let view = json!({"id": "a@1", "eval_id": "a", "attempt": 1, "state": "running",
                          "progress": progress});
        serde_json::from_value::<ExecutionView>(view).unwrap().progress
    };
    assert!(view(json!({"done": 1})).is_some());
    for other in [json!(0.5), json!("half"), json!({"counters": {"a b": 1}}), Value::Null] {
        assert!(view(other.clone()).is_none(), "{other}");
    }
}
