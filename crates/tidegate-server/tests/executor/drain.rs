//! Shutdown of an executor.

use crate::support::{LONG, TestWorker, code, slots};
use serde_json::json;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tidegate_server::tasks::executor::{Drained, HttpRunner, Runner};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// A server that responds once its gate is opened.
async fn gated_server() -> (SocketAddr, oneshot::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (open, opened) = oneshot::channel();
    tokio::spawn(async move {
        let (mut tcp, _) = listener.accept().await.unwrap();
        opened.await.unwrap();
        let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\nconnection: close\r\n\r\ndone\n";
        tcp.write_all(answer).await.unwrap();
        // The request is read to its end: closing before that would reset the connection.
        let _ = tcp.read_to_end(&mut Vec::new()).await;
    });
    (address, open)
}

#[tokio::test]
async fn a_drain_refuses_new_executions_and_lets_running_ones_finish() {
    let (server, finish) = gated_server().await;
    let runner = HttpRunner::new(&format!("http://{server}"), Vec::new()).unwrap();
    let worker = TestWorker::with(slots(2), Runner::Http(Box::new(runner)));
    worker.execute(code("runs", "until it is let go")).await.ok();
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
    let again = ask(Method::POST, "/execute", code("runs", "until it is let go").to_string());
    assert_eq!(again.await.ok()["container_id"], "runs@1", "what it knows it still answers");
    let mut view = json!({});
    while view["state"] != "running" {
        view = ask(Method::GET, "/executions/runs", String::new()).await.ok();
    }
    // A poll for the end alone, sent before the requests below.
    let mut asking = TcpStream::connect(address).await.unwrap();
    let head = "GET /executions/runs?wait_ms=60000&after=5 HTTP/1.1\r\nhost: x\r\n\r\n";
    asking.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..2 {
        assert_eq!(ask(Method::GET, "/health/ready", String::new()).await.status, 503);
    }
    finish.send(()).unwrap();
    let mut told = String::new();
    timeout(LONG, asking.read_to_string(&mut told)).await.unwrap().unwrap();
    assert!(told.contains("\"succeeded\""), "the poll gets the ending: {told}");
    let key = "runs".parse().unwrap();
    let view = executor.execution(&key, None, Duration::ZERO, 0).await.unwrap();
    assert_eq!(view.output[0].text, "done\n");
    let drained = timeout(LONG, draining).await.unwrap().unwrap();
    assert_eq!(drained, Drained { stopped: 0, left: 0 });
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}

#[tokio::test]
async fn executions_beyond_the_grace_period_are_stopped() {
    let worker = TestWorker::start(1);
    worker.execute(code("hangs", "hang")).await.ok();
    let executor = worker.executor().clone();
    let grace = Duration::from_millis(50);
    let drained = spawn_blocking(move || worker.worker.shutdown(grace));
    let drained = timeout(LONG, drained).await.unwrap().unwrap();
    assert_eq!(drained, Drained { stopped: 1, left: 0 });
    let key = "hangs".parse().unwrap();
    let view = executor.execution(&key, None, Duration::ZERO, 0).await.unwrap();
    assert_eq!(view.message, "the executor shuts down");
    assert_eq!(serde_json::to_value(view.state).unwrap(), "cancelled");
}

/// The time for pending responses, 2 s, is for connections that have some.
#[tokio::test]
async fn an_idle_worker_ends_at_once() {
    let worker = TestWorker::start(1);
    worker.capacity().await;
    let start = Instant::now();
    let drained = spawn_blocking(move || worker.worker.shutdown(LONG));
    assert_eq!(drained.await.unwrap(), Drained { stopped: 0, left: 0 });
    assert!(start.elapsed() < Duration::from_millis(1_900), "{:?}", start.elapsed());
}
