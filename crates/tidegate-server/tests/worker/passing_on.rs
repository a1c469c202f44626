//! Executions that a server of the user's does.

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
use tidegate_server::worker::{ExecutorConfig, HttpRunner, Runner};
use tokio::net::TcpListener;

/// What a user's server was asked, and how many of those who asked went away before it answered.
#[derive(Clone, Default)]
struct Seen {
    asked: Arc<Mutex<Vec<(http::request::Parts, Value)>>>,
    given_up: Arc<AtomicUsize>,
}

/// Told when the future that it is in is dropped before its end.
struct Waiting(Seen);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.given_up.fetch_add(1, Ordering::SeqCst);
    }
}

/// A server that does what the code says: a status and a text, or nothing for ever.
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

fn passing_to(url: &str, config: ExecutorConfig) -> TestWorker {
    TestWorker::with(config, Runner::Http(HttpRunner::new(url, Vec::new()).unwrap()))
}

#[tokio::test]
async fn it_gets_all_that_is_known_and_its_answer_is_the_output() {
    let (address, seen) = user_server().await;
    let worker = passing_to(&format!("http://{address}/run?x=1"), slots(2));
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
async fn whatever_else_it_answers_is_a_failure_with_the_status() {
    let (address, seen) = user_server().await;
    let worker = passing_to(&format!("http://{address}"), slots(1));
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
async fn a_server_that_is_not_there_is_a_failure_and_the_slot_is_free() {
    let gone = Reserved::new();
    let worker = passing_to(&format!("http://{}", gone.address), slots(1));
    worker.execute(code("a", "200 x")).await.ok();
    let view = worker.ended("a").await;
    assert_eq!((&view["state"], &view["reason"]), (&json!("failed"), &json!("http_error")));
    assert!(view["message"].as_str().unwrap().contains("connect"), "{view}");
    assert_eq!(worker.capacity().await.available_slots, 1);
}

#[tokio::test]
async fn when_it_must_stop_or_its_time_is_over_the_request_is_given_up() {
    let (address, seen) = user_server().await;
    let worker = passing_to(&format!("http://{address}"), slots(2));
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
async fn an_answer_that_is_too_long_is_cut() {
    let (address, _) = user_server().await;
    let config = ExecutorConfig { output_bytes_max: 10, ..slots(1) };
    let worker = passing_to(&format!("http://{address}"), config);
    worker.execute(code("loud", "200 0123456789abc")).await.ok();
    let view = worker.ended("loud").await;
    assert_eq!((&view["reason"], &view["output_cut"]), (&json!("output_limit"), &json!(true)));
    assert_eq!(view["output"][0]["text"], "0123456789");
}
