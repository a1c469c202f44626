//! Executions on an HTTP server.

use crate::reserved::Reserved;
use crate::support::{TestWorker, code, slots, with};
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidegate_server::tasks::executor::{ExecutorConfig, HttpRunner, Runner};
use tokio::net::TcpListener;

/// Requests that the server has received, and those dropped before their response.
#[derive(Clone, Default)]
struct Seen {
    asked: Arc<Mutex<Vec<(http::request::Parts, Value)>>>,
    given_up: Arc<AtomicUsize>,
}

/// Counts when its future is dropped early.
struct Waiting(Seen);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.given_up.fetch_add(1, Ordering::SeqCst);
    }
}

/// A server that responds as the code says: with a status and a text, or never.
async fn user_server() -> (SocketAddr, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Seen::default();
    let all = seen.clone();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let seen = all.clone();
            let service = service_fn(move |request| answer(seen.clone(), request));
            let serving = hyper::server::conn::http1::Builder::new();
            tokio::spawn(serving.serve_connection(TokioIo::new(tcp), service));
        }
    });
    (address, seen)
}

async fn answer(
    seen: Seen,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (head, body) = request.into_parts();
    let body: Value = serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap();
    let code = body["code"].as_str().unwrap().to_owned();
    seen.asked.lock().unwrap().push((head, body));
    if code == "wait" {
        let _waiting = Waiting(seen);
        std::future::pending::<()>().await;
    }
    let (status, text) = code.split_once(' ').unwrap();
    let mut response = Response::new(Full::new(Bytes::from(text.to_owned())));
    *response.status_mut() = StatusCode::from_bytes(status.as_bytes()).unwrap();
    Ok(response)
}

fn runner_for(url: &str, config: ExecutorConfig) -> TestWorker {
    TestWorker::with(config, Runner::Http(Box::new(HttpRunner::new(url, Vec::new()).unwrap())))
}

#[tokio::test]
async fn the_server_gets_the_whole_execution_and_its_response_is_the_output() {
    let (address, seen) = user_server().await;
    let worker = runner_for(&format!("http://{address}/run?x=1"), slots(2));
    assert_eq!(worker.capacity().await.kind, "http");
    let more = json!({"language": "python", "args": ["a"], "env": {"B": "c"}, "attempt": 3, "timeout_ms": 20_000});
    worker.execute(with(code("one", "201 schön"), more)).await.ok();
    let view = worker.ended("one@3").await;
    assert_eq!((&view["state"], &view["reason"]), (&json!("succeeded"), &json!("exit")));
    assert_eq!(view["output"], json!([{"stream": "stdout", "text": "schön"}]));
    let (head, body) = seen.asked.lock().unwrap().pop().unwrap();
    assert_eq!((head.method.as_str(), head.uri.to_string()), ("POST", "/run?x=1".to_owned()));
    assert_eq!(head.headers["tidegate-task"], "one");
    assert_eq!(head.headers["tidegate-attempt"], "3");
    assert_eq!(head.headers["tidegate-deadline-ms"], "20000");
    assert_eq!(head.headers["idempotency-key"], "one@3");
    assert_eq!(head.headers["content-type"], "application/json");
    let expected = json!({
        "eval_id": "one", "attempt": 3, "language": "python", "code": "201 schön",
        "args": ["a"], "env": {"B": "c"},
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn any_other_status_is_a_failure_with_that_status() {
    let (address, seen) = user_server().await;
    let worker = runner_for(&format!("http://{address}"), slots(1));
    for (id, code_of) in [("a", "500 sorry"), ("b", "404 no"), ("c", "302 there")] {
        worker.execute(code(id, code_of)).await.ok();
        let view = worker.ended(id).await;
        assert_eq!((&view["state"], &view["reason"]), (&json!("failed"), &json!("http_error")));
        let message = view["message"].as_str().unwrap();
        assert!(message.contains(&code_of[..3]), "{message}");
        assert_eq!(view["output"][0]["text"], code_of[4..]);
    }
    assert_eq!(seen.asked.lock().unwrap().len(), 3, "each was passed on once");
}

#[tokio::test]
async fn an_unreachable_server_is_a_failure_and_frees_the_slot() {
    let gone = Reserved::new();
    let worker = runner_for(&format!("http://{}", gone.address), slots(1));
    worker.execute(code("a", "200 x")).await.ok();
    let view = worker.ended("a").await;
    assert_eq!((&view["state"], &view["reason"]), (&json!("failed"), &json!("http_error")));
    assert!(view["message"].as_str().unwrap().contains("connect"), "{view}");
    assert_eq!(worker.capacity().await.available_slots, 1);
}

#[tokio::test]
async fn a_stop_and_a_timeout_drop_the_request() {
    let (address, seen) = user_server().await;
    let worker = runner_for(&format!("http://{address}"), slots(2));
    worker.execute(code("told", "wait")).await.ok();
    worker.execute(with(code("late", "wait"), json!({"timeout_ms": 50}))).await.ok();
    assert_eq!(worker.ended("late").await["reason"], "timeout");
    worker.delete("/executions/told").await.ok();
    assert_eq!(worker.ended("told").await["reason"], "cancelled");
    let waited = tokio::time::timeout(crate::support::LONG, async {
        while seen.given_up.load(Ordering::SeqCst) < 2 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    assert!(waited.await.is_ok(), "the server sees nobody go");
}

#[tokio::test]
async fn a_response_beyond_the_output_limit_is_cut() {
    let (address, _) = user_server().await;
    let config = ExecutorConfig { output_bytes_max: 10, ..slots(1) };
    let worker = runner_for(&format!("http://{address}"), config);
    worker.execute(code("loud", "200 0123456789abc")).await.ok();
    let view = worker.ended("loud").await;
    assert_eq!((&view["reason"], &view["output_cut"]), (&json!("output_limit"), &json!(true)));
    assert_eq!(view["output"][0]["text"], "0123456789");
}
