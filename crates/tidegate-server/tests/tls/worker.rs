//! Workers behind TLS with a token, and managers that reach them.

use crate::authority::{Authority, Issued};
use crate::client::Client;
use crate::node::{TestNode, eventually};
use serde_json::Value;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidegate_server::config::{Config, Loader, TlsFiles, TokenDigest};
use tidegate_server::tasks::executor::{ExecutorConfig, MockRunner, Runner, Worker, WorkerAccess};

const TOKEN: &str = "tg_worker-0123456789";

fn worker(server: &Issued, client_ca: Option<PathBuf>, token: Option<&str>) -> Worker {
    let (cert, key) = (server.cert.clone(), server.key.clone());
    let tls = Some(TlsFiles { cert, key, client_ca });
    let token = token.map(|token| TokenDigest::of(token.as_bytes()));
    let access = WorkerAccess { tls, token, ..WorkerAccess::default() };
    let runner = Runner::Mock(MockRunner::new(Duration::from_millis(1), Vec::new()));
    let free = SocketAddr::from(([127, 0, 0, 1], 0));
    Worker::start_with(free, access, ExecutorConfig::new("w", 2), runner).unwrap()
}

/// A manager of this worker alone, which trusts an authority and sends a token.
fn manager(worker: &Worker, ca: &Path, own: Option<&Issued>, token: &str) -> TestNode {
    let own = own.map(|own| format!("tls_cert = {:?}\ntls_key = {:?}\n", own.cert, own.key));
    let toml = format!(
        "[tasks]\ntls_ca = {ca:?}\n{}[[executor]]\nurl = \"https://localhost:{}\"\n\
         token_env = \"WORKER_TOKEN\"\n",
        own.unwrap_or_default(),
        worker.address().port()
    );
    let env = [("WORKER_TOKEN".to_owned(), token.to_owned())];
    let config: Config = Loader::new().file("f", toml).env(env).load().unwrap().config;
    TestNode::try_start_with(config).unwrap()
}

/// Asks the plain admin port of a manager.
async fn ask(node: &TestNode, (method, path): (&str, &str), body: &str) -> Value {
    use http_body_util::{BodyExt as _, Full};
    let tcp = tokio::net::TcpStream::connect(node.admin).await.unwrap();
    let io = hyper_util::rt::TokioIo::new(tcp);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
    tokio::spawn(connection);
    let request = http::Request::builder().method(method).uri(path).header("host", "localhost");
    let request = request.header("content-type", "application/json");
    let request = request.body(Full::<bytes::Bytes>::from(body.to_owned())).unwrap();
    let body = sender.send_request(request).await.unwrap().into_body().collect().await.unwrap();
    serde_json::from_slice(&body.to_bytes()).unwrap()
}

async fn is_up(node: &TestNode) -> bool {
    ask(node, ("GET", "/v1/executors"), "").await["executors"][0]["up"] == true
}

/// Submits a task, and waits until it has succeeded.
async fn runs_a_task(node: &TestNode) {
    let task = r#"{"id":"t","runtime":"sh","code":"print hello"}"#;
    ask(node, ("POST", "/v1/tasks"), task).await;
    eventually("the task succeeds", async || {
        ask(node, ("GET", "/v1/tasks/t"), "").await["status"] == "succeeded"
    })
    .await;
}

#[tokio::test]
async fn a_worker_answers_its_token_alone_and_health_to_everybody() {
    let authority = Authority::new();
    let worker = worker(&authority.issue("worker"), None, Some(TOKEN));
    let client = Client::trusting(&authority);
    let port = worker.address();
    for (request, body) in [
        (("GET", "/capacity"), ""),
        (("GET", "/metrics"), ""),
        (("GET", "/executions/a"), ""),
        (("DELETE", "/executions/a"), ""),
        (("POST", "/execute"), r#"{"eval_id":"a","code":"1"}"#),
        (("POST", "/reserve"), r#"{"eval_id":"a"}"#),
    ] {
        let without = client.ask(port, request, None, body).await;
        assert_eq!(
            (without.status, reason(&without.json())),
            (401, "token_missing"),
            "{request:?}"
        );
        let guessed = client.ask(port, request, Some("tg_guess-0123456789"), body).await;
        assert_eq!(
            (guessed.status, reason(&guessed.json())),
            (401, "token_unknown"),
            "{request:?}"
        );
    }
    assert_eq!(worker.executor().counts().started, 0);
    assert_eq!(client.get(port, "/health/live").await.status, 200);
    assert_eq!(client.get(port, "/health/ready").await.status, 200);
    let known = client.ask(port, ("GET", "/metrics"), Some(TOKEN), "").await;
    assert_eq!(known.status, 200);
    let expiry = "tidegate_tls_certificate_expiry_timestamp_seconds{port=\"worker\"}";
    assert!(known.body.contains(expiry), "{}", known.body);
}

fn reason(error: &Value) -> &str {
    error["error"]["reason"].as_str().unwrap_or_else(|| panic!("{error}"))
}

#[tokio::test]
async fn a_manager_runs_tasks_at_a_worker_behind_tls_and_a_token() {
    let authority = Authority::new();
    let worker = worker(&authority.issue("worker"), None, Some(TOKEN));
    let node = manager(&worker, &authority.bundle(), None, TOKEN);
    runs_a_task(&node).await;
    assert!(is_up(&node).await);
    assert_eq!(worker.executor().counts().started, 1);
}

/// Handshakes that a worker has refused, or that were broken off.
async fn failed_handshakes(client: &Client, worker: &Worker) -> u64 {
    let metrics = client.ask(worker.address(), ("GET", "/metrics"), Some(TOKEN), "").await.body;
    let series = "tidegate_tls_handshakes_failed_total{port=\"worker\"} ";
    let value = metrics.lines().find_map(|line| line.strip_prefix(series));
    value.unwrap_or_else(|| panic!("{metrics}")).parse().unwrap()
}

/// Gives a manager a task, waits until it has failed to reach the worker, and finds the task queued.
async fn is_shut_out(node: &TestNode, client: &Client, worker: &Worker) {
    let before = failed_handshakes(client, worker).await;
    ask(node, ("POST", "/v1/tasks"), r#"{"id":"t","runtime":"sh","code":"print hello"}"#).await;
    eventually("the manager tries to reach the worker", async || {
        failed_handshakes(client, worker).await > before
    })
    .await;
    assert!(!is_up(node).await);
    assert_eq!(ask(node, ("GET", "/v1/tasks/t"), "").await["status"], "queued");
}

#[tokio::test]
async fn a_manager_sends_nothing_to_a_worker_that_it_does_not_trust() {
    let (ours, theirs) = (Authority::new(), Authority::new());
    let worker = worker(&ours.issue("worker"), None, Some(TOKEN));
    let mistrusting = manager(&worker, &theirs.bundle(), None, TOKEN);
    is_shut_out(&mistrusting, &Client::trusting(&ours), &worker).await;
    assert_eq!(worker.executor().counts().started, 0);
}

#[tokio::test]
async fn a_manager_with_another_token_runs_nothing() {
    let authority = Authority::new();
    let worker = worker(&authority.issue("worker"), None, Some(TOKEN));
    let wrong = manager(&worker, &authority.bundle(), None, "tg_other-0123456789");
    let task = r#"{"id":"t","runtime":"sh","code":"print hello"}"#;
    ask(&wrong, ("POST", "/v1/tasks"), task).await;
    // Started later, with the same interval of probes: the first one has had its chance when this one is done.
    let right = manager(&worker, &authority.bundle(), None, TOKEN);
    runs_a_task(&right).await;
    assert_eq!(worker.executor().counts().started, 1);
    assert!(!is_up(&wrong).await);
    assert_eq!(ask(&wrong, ("GET", "/v1/tasks/t"), "").await["status"], "queued");
}

#[tokio::test]
async fn a_client_certificate_opens_a_worker_without_a_token() {
    let (servers, clients) = (Authority::new(), Authority::new());
    let worker = worker(&servers.issue("worker"), Some(clients.bundle()), None);
    let own = clients.issue("manager");
    let client = Client::showing(&servers, &own);
    for identity in [Some(servers.issue("strange")), None] {
        let shut_out = manager(&worker, &servers.bundle(), identity.as_ref(), TOKEN);
        is_shut_out(&shut_out, &client, &worker).await;
    }
    let known = manager(&worker, &servers.bundle(), Some(&own), TOKEN);
    runs_a_task(&known).await;
    assert_eq!(worker.executor().counts().started, 1);
}
