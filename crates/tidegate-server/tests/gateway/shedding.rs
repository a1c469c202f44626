//! Refusals, as a client sees them.

use crate::support::{Client, TestGateway, Upstream, eventually, undisturbed};
use bytes::Bytes;
use http_body_util::{Empty, Full};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

const SMALL: &str =
    "[admission]\nglobal_limit = 10\nhigh_limit = 5\nnormal_limit = 3\nlow_limit = 2\n";

/// Requests that wait at the upstream, each holding its place.
async fn hold(gateway: &TestGateway, priority: &'static str, count: u64) -> Vec<JoinHandle<u16>> {
    let before = gateway.in_flight();
    let client = Client::new(gateway.address);
    let held = (0..count)
        .map(|_| {
            tokio::spawn(async move { client.get_as("/hold", priority).await.status.as_u16() })
        })
        .collect();
    eventually("the places are taken", || gateway.in_flight() == before + count).await;
    held
}

/// Lets everything that waits at the upstream be answered.
async fn let_go(upstream: &Upstream, held: Vec<JoinHandle<u16>>) {
    upstream.gate.open();
    for task in held {
        assert_eq!(task.await.unwrap(), 200, "what was admitted is served");
    }
}

#[tokio::test]
async fn ad32_unit_2_low_is_shed_before_normal_before_high_on_the_real_server() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(SMALL, &[upstream.address]);
    let client = Client::new(gateway.address);
    let mut held = hold(&gateway, "low", 2).await;
    assert_eq!(client.get_as("/", "low").await.status, 503);
    held.extend(hold(&gateway, "normal", 3).await);
    assert_eq!(client.get_as("/", "low").await.status, 503);
    assert_eq!(client.get_as("/", "normal").await.status, 503);
    held.extend(hold(&gateway, "high", 5).await);
    for priority in ["low", "normal", "high"] {
        assert_eq!(client.get_as("/", priority).await.status, 503, "{priority}");
    }
    assert_eq!(client.get("/health/live").await.status, 200, "critical is never shed");
    let_go(&upstream, held).await;
    gateway.balances().await;
}

#[tokio::test]
async fn a_refusal_names_its_reason_and_says_when_to_come_back() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(SMALL, &[upstream.address]);
    let held = hold(&gateway, "low", 2).await;
    let answer = Client::new(gateway.address).get_as("/", "low").await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.header("content-type"), "application/json");
    let body = answer.json();
    assert_eq!(body["type"], "service_unavailable");
    assert_eq!((&body["code"], &body["reason"]), (&503.into(), &"priority_limit".into()));
    assert_eq!((&body["priority"], &body["limit"]), (&"low".into(), &2.into()));
    let millis: u64 = answer.header("retry-after-ms").parse().unwrap();
    let seconds: u64 = answer.header("retry-after").parse().unwrap();
    assert_eq!(body["retry_after_ms"], millis);
    assert_eq!(seconds, millis.div_ceil(1000).max(1));
    let_go(&upstream, held).await;
}

#[tokio::test]
async fn at_the_global_limit_the_answer_says_so() {
    let upstream = Upstream::closed().await;
    let config = "[admission]\nglobal_limit = 4\nhigh_limit = 4\nnormal_limit = 4\nlow_limit = 4\n";
    let gateway = TestGateway::start(config, &[upstream.address]);
    let held = hold(&gateway, "low", 4).await;
    let answer = Client::new(gateway.address).get_as("/", "high").await;
    assert_eq!(
        (answer.status.as_u16(), answer.json()["reason"].as_str().unwrap()),
        (503, "global_limit")
    );
    let_go(&upstream, held).await;
}

#[tokio::test]
async fn borrow_lets_normal_use_idle_places_of_high() {
    let upstream = Upstream::closed().await;
    let config = format!("{SMALL}sharing = \"borrow\"\n");
    let gateway = TestGateway::start(&config, &[upstream.address]);
    // Of High's 5 places 4 are below the pressure mark of 90 %, rounded up to 5: all can be lent.
    let mut held = hold(&gateway, "normal", 8).await;
    assert_eq!(Client::new(gateway.address).get_as("/", "normal").await.status, 503);
    held.extend(hold(&gateway, "high", 2).await);
    let refused = Client::new(gateway.address).get_as("/", "high").await;
    assert_eq!(refused.json()["reason"], "global_limit", "and only for that is High refused");
    let_go(&upstream, held).await;
}

#[tokio::test]
async fn the_advice_follows_how_fast_places_come_free() {
    let upstream = Upstream::closed().await;
    let config =
        "[admission]\nglobal_limit = 10\nlow_limit = 1\nnormal_limit = 3\nhigh_limit = 5\n";
    let gateway = TestGateway::start(config, &[upstream.address]);
    let client = Client::new(gateway.address);
    let advised = || async {
        let answer = client.get_as("/", "low").await;
        answer.header("retry-after-ms").parse::<u64>().unwrap()
    };
    let held = hold(&gateway, "low", 1).await;
    // Nothing comes free: the advice grows with the silence.
    let first = advised().await;
    tokio::time::sleep(Duration::from_millis(5000)).await;
    let stalled = advised().await;
    // A quarter of the silence at least, less the time of the observation before.
    assert!(stalled > first && stalled >= 1000, "{first} then {stalled}");
    // Places come free all the time: it falls.
    let_go(&upstream, held).await;
    for _ in 0..300 {
        client.get_as("/", "low").await;
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    gateway.balances().await;
    upstream.gate.close();
    let held = hold(&gateway, "low", 1).await;
    let flowing = advised().await;
    assert!(flowing * 2 < stalled, "{stalled} then {flowing}");
    let_go(&upstream, held).await;
}

#[tokio::test]
async fn a_refusal_leaves_the_connection_usable_and_does_not_wait_for_the_body() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(SMALL, &[upstream.address]);
    let held = hold(&gateway, "low", 2).await;
    // The head announces a body that never comes: the answer does not wait for it.
    let mut tcp = TcpStream::connect(gateway.address).await.unwrap();
    let head =
        "POST / HTTP/1.1\r\nhost: x\r\ntidegate-priority: low\r\ncontent-length: 1000000\r\n\r\n";
    tcp.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    tcp.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains("connection: close"), "an unread body ends the connection: {answer}");

    // Small bodies come with their head; the connection goes on.
    let io = hyper_util::rt::TokioIo::new(TcpStream::connect(gateway.address).await.unwrap());
    let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
    tokio::spawn(connection);
    for _ in 0..3 {
        let request = Client::new(gateway.address)
            .request("POST", "/")
            .header("tidegate-priority", "low")
            .body(Full::<Bytes>::from("small"))
            .unwrap();
        sender.ready().await.unwrap();
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(crate::support::Answer::read(response).await.status, 503);
    }
    let_go(&upstream, held).await;
}

#[tokio::test]
async fn a_client_that_is_sending_a_large_body_still_reads_its_refusal() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(SMALL, &[upstream.address]);
    let held = hold(&gateway, "low", 2).await;
    for _ in 0..10 {
        let mut tcp = TcpStream::connect(gateway.address).await.unwrap();
        let head = "POST / HTTP/1.1\r\nhost: x\r\ntidegate-priority: low\r\ncontent-length: 200000\r\n\r\n";
        tcp.write_all(head.as_bytes()).await.unwrap();
        tcp.write_all(&vec![b'x'; 200_000]).await.unwrap();
        let mut answer = Vec::new();
        tcp.read_to_end(&mut answer).await.expect("closed in order, not reset over the answer");
        assert!(answer.starts_with(b"HTTP/1.1 503"));
    }
    let_go(&upstream, held).await;
}

#[tokio::test]
async fn an_expectant_client_is_refused_before_it_sends_its_body() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(SMALL, &[upstream.address]);
    let held = hold(&gateway, "low", 2).await;
    let mut tcp = TcpStream::connect(gateway.address).await.unwrap();
    let head = "POST / HTTP/1.1\r\nhost: x\r\ntidegate-priority: low\r\ncontent-length: 99999\r\n\
                expect: 100-continue\r\n\r\n";
    tcp.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    tcp.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 503"), "no 100 Continue first: {answer}");
    let_go(&upstream, held).await;
}

#[tokio::test]
async fn http2_refusals_leave_the_connection_to_other_streams() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(SMALL, &[upstream.address]);
    let held = hold(&gateway, "low", 2).await;
    let io = hyper_util::rt::TokioIo::new(TcpStream::connect(gateway.address).await.unwrap());
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(executor, io).await.unwrap();
    tokio::spawn(connection);
    for _ in 0..50 {
        let request = Client::h2(gateway.address)
            .request("GET", "/")
            .header("tidegate-priority", "low")
            .body(Empty::<Bytes>::new())
            .unwrap();
        assert_eq!(sender.send_request(request).await.unwrap().status(), 503);
    }
    let_go(&upstream, held).await;
}

#[tokio::test]
async fn a_small_body_that_comes_a_moment_later_does_not_cost_the_connection() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(SMALL, &[upstream.address]);
    let held = hold(&gateway, "low", 2).await;
    let head = "POST / HTTP/1.1\r\nhost: x\r\ntidegate-priority: low\r\ncontent-length: 4\r\n\r\n";
    // How long such a body is waited for.
    let soon = Duration::from_millis(50);
    let mut tcp = undisturbed("ten bodies come soon", async || {
        let mut tcp = TcpStream::connect(gateway.address).await.unwrap();
        tcp.set_nodelay(true).unwrap();
        for _ in 0..10 {
            let start = Instant::now();
            tcp.write_all(head.as_bytes()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
            let sent = tcp.write_all(b"body").await;
            let mut answer = vec![0; 4096];
            let read = tcp.read(&mut answer).await.unwrap();
            let answer = String::from_utf8_lossy(&answer[..read]);
            assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
            if sent.is_err() || answer.contains("connection: close") {
                assert!(start.elapsed() >= soon, "after {:?}: {answer}", start.elapsed());
                return None;
            }
        }
        Some(tcp)
    })
    .await;
    // One that does not come soon is not waited for, and the end is announced.
    tcp.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    tcp.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("connection: close"), "{answer}");
    let_go(&upstream, held).await;
}

#[tokio::test]
async fn a_head_request_is_refused_without_a_body_over_either_protocol() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(SMALL, &[upstream.address]);
    let held = hold(&gateway, "low", 2).await;
    for client in [Client::new(gateway.address), Client::h2(gateway.address)] {
        let request = client.request("HEAD", "/").header("tidegate-priority", "low");
        let answer = client.send(request.body(Full::default()).unwrap()).await;
        assert_eq!((answer.status.as_u16(), answer.body.len()), (503, 0));
        assert_ne!(answer.header("content-length"), "0");
    }
    for client in [Client::new(gateway.admin), Client::h2(gateway.admin)] {
        let request = client.request("HEAD", "/metrics").body(Full::default()).unwrap();
        let answer = client.send(request).await;
        assert_eq!((answer.status.as_u16(), answer.body.len()), (200, 0));
    }
    let_go(&upstream, held).await;
}
