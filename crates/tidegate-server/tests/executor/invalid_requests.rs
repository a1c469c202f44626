//! Invalid requests, by status.

use crate::support::{TestWorker, code, request, send, slots, with};
use http::Method;
use serde_json::json;
use std::net::SocketAddr;
use std::time::Duration;
use tidegate::task::TaskLimits;
use tidegate_server::config::{TlsFiles, TokenDigest};
use tidegate_server::tasks::executor::{
    ExecutorConfig, MockRunner, Runner, Worker, WorkerAccess, WorkerError, worker_config_errors,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// A worker with python and sh, and small limits.
fn small() -> TestWorker {
    let limits = TaskLimits { code_bytes_max: 100, extras_bytes_max: 50, ..TaskLimits::default() };
    let config = ExecutorConfig { limits, ..slots(2) };
    let runtimes = vec!["python".to_owned(), "sh".to_owned()];
    TestWorker::with(config, Runner::Mock(MockRunner::new(Duration::ZERO, runtimes)))
}

#[tokio::test]
async fn what_can_not_be_read_is_400_and_what_is_not_expected_422() {
    let worker = small();
    for body in ["", "{", "hello", "{\"eval_id\": \"a\", \"code\": \"1\"} x"] {
        let answer = worker.ask(Method::POST, "/execute", body).await;
        answer.refused(400, "not_json");
    }
    for body in [json!([]), json!({"code": "1"}), json!({"eval_id": 7, "code": "1"})] {
        worker.execute(body).await.refused(422, "wrong_type");
    }
    worker
        .execute(with(code("a", "1"), json!({"timeout_ms": "5"})))
        .await
        .refused(422, "wrong_type");
    for id in ["", "a b", "a/b", "a@1", "é", &"a".repeat(129)] {
        worker.execute(code(id, "1")).await.refused(400, "bad_id");
    }
    worker.get("/executions/a@0").await.refused(400, "bad_id");
    worker.get("/executions/a%20b").await.refused(400, "bad_id");
    worker.get("/executions/a?after=x").await.refused(400, "bad_query");
    assert_eq!(worker.executor().counts().started, 0, "nothing of it was started");
}

#[tokio::test]
async fn what_makes_no_sense_is_422() {
    let worker = small();
    let told = worker.execute(with(code("a", "1"), json!({"language": "cobol"}))).await;
    let told = told.refused(422, "unknown_runtime");
    assert!(told["detail"].as_str().unwrap().contains("python, sh"), "{told}");
    let timeout = |timeout_ms| with(code("a", "1"), json!({"timeout_ms": timeout_ms}));
    worker.execute(timeout(json!(0))).await.refused(422, "bad_timeout");
    worker.execute(timeout(json!(86_400_001))).await.refused(422, "bad_timeout");
    worker.execute(timeout(json!(-5))).await.refused(422, "out_of_range");
    worker.execute(timeout(json!(1.5))).await.refused(422, "out_of_range");
    worker.execute(with(code("a", "1"), json!({"attempt": 0}))).await.refused(422, "bad_attempt");
    worker.execute(with(code("a", "1"), json!({"attempt": -1}))).await.refused(422, "out_of_range");
    worker.execute(code("a", "")).await.refused(422, "code_empty");
    worker.execute(with(code("a", "1"), json!({"args": ["\0"]}))).await.refused(422, "bad_extras");
    worker
        .execute(with(code("a", "1"), json!({"env": {"A=": ""}})))
        .await
        .refused(422, "bad_extras");
    assert_eq!(worker.executor().counts().started, 0, "nothing of it was started");
    worker.execute(with(code("a", "1"), json!({"runtime": "sh"}))).await.ok();
}

#[tokio::test]
async fn what_is_too_large_is_413() {
    let worker = small();
    worker.execute(code("a", &"x".repeat(100))).await.ok();
    worker.execute(code("b", &"x".repeat(101))).await.refused(413, "code_too_large");
    let args = with(code("b", "1"), json!({"args": ["x".repeat(51)]}));
    worker.execute(args).await.refused(413, "extras_too_large");
    worker.execute(code("b", &"x".repeat(100_000))).await.refused(413, "body_too_large");
    let reserve = json!({"eval_id": "b", "more": "x".repeat(100_000)});
    worker.reserve(reserve).await.refused(413, "body_too_large");
}

/// The head decides: no byte of the body is sent or awaited.
#[tokio::test]
async fn a_body_declared_too_large_is_refused_by_its_head() {
    let worker = small();
    for head in
        ["content-length: 99999999999\r\n", "content-length: 200000\r\nexpect: 100-continue\r\n"]
    {
        let mut tcp = TcpStream::connect(worker.address()).await.unwrap();
        let head = format!("POST /execute HTTP/1.1\r\nhost: x\r\n{head}\r\n");
        tcp.write_all(head.as_bytes()).await.unwrap();
        let mut said = String::new();
        let read = timeout(Duration::from_secs(20), tcp.read_to_string(&mut said)).await;
        assert!(read.is_ok(), "it closes what it does not read");
        assert!(said.starts_with("HTTP/1.1 413 "), "{said}");
    }
}

#[tokio::test]
async fn unknown_paths_and_methods_are_refused() {
    let worker = small();
    for path in ["/", "/capacity/", "/executions", "/executions/a/b", "/v1/tasks"] {
        worker.get(path).await.refused(404, "unknown_path");
    }
    for (method, path, allow) in [
        (Method::GET, "/execute", "POST"),
        (Method::PUT, "/reserve", "POST"),
        (Method::POST, "/capacity", "GET, HEAD"),
        (Method::POST, "/metrics", "GET, HEAD"),
        (Method::POST, "/executions/a", "GET, HEAD, DELETE"),
    ] {
        let answer = worker.ask(method, path, "").await;
        answer.refused(405, "method");
        assert_eq!(answer.headers["allow"], allow);
    }
    let head = worker.ask(Method::HEAD, "/capacity", "").await;
    assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
}

/// A web page must not run code on its reader's machine.
#[tokio::test]
async fn a_web_page_of_another_origin_starts_nothing() {
    let worker = small();
    let execute = |origin: &str| {
        let mut request = request(Method::POST, "/execute", code("a", "1").to_string());
        request.headers_mut().insert("origin", origin.parse().unwrap());
        request
    };
    for origin in ["https://evil.example", "null", "http://127.0.0.1:1"] {
        send(worker.address(), execute(origin)).await.refused(403, "cross_origin");
    }
    assert_eq!(worker.executor().counts().started, 0);
}

#[tokio::test]
async fn health_answers_while_it_is_full() {
    let worker = TestWorker::start(1);
    worker.execute(code("a", "hang")).await.ok();
    assert_eq!(worker.get("/health/live").await.ok()["status"], "live");
    assert_eq!(worker.get("/health/ready").await.ok()["status"], "ready");
}

#[test]
fn only_loopback_addresses_are_accepted_without_tls_and_a_token() {
    let listen = SocketAddr::from(([0, 0, 0, 0], 0));
    let runner = Runner::Mock(MockRunner::new(Duration::ZERO, Vec::new()));
    let Err(WorkerError::ConfigError(error)) = Worker::start(listen, slots(1), runner) else {
        panic!("it listens to everybody");
    };
    assert_eq!(error.setting, "listen");
    let told = |access: &WorkerAccess| -> Vec<String> {
        let errors = worker_config_errors(listen, access, &slots(1));
        errors.iter().map(ToString::to_string).collect()
    };
    let (tls, token) = ("give --tls-cert and --tls-key", "set TIDEGATE_WORKER_TOKEN");
    let open = told(&WorkerAccess::default());
    assert!(open.len() == 2 && open[0].contains(tls) && open[1].contains(token), "{open:?}");
    let plain = WorkerAccess { plain_text: true, ..WorkerAccess::default() };
    assert!(told(&plain).len() == 1 && told(&plain)[0].contains(token));
    let digest = Some(TokenDigest::of(b"0123456789abcdef"));
    assert_eq!(told(&WorkerAccess { token: digest, ..plain }), [""; 0]);
    let files = |client_ca| TlsFiles { cert: "c".into(), key: "k".into(), client_ca };
    let tls_only = WorkerAccess { tls: Some(files(None)), ..WorkerAccess::default() };
    assert!(told(&tls_only).len() == 1 && told(&tls_only)[0].contains(token));
    let certificates = WorkerAccess { tls: Some(files(Some("ca".into()))), ..tls_only };
    assert_eq!(told(&certificates), [""; 0]);
}
