//! Faults that end by themselves: slow, smaller, dead and cut.

use super::support::{Answer, CHAT, TestMock, chat, fast, slow, streamed};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate_testkit::mock::MockConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

/// Only ends a test that has failed.
const BOUND: Duration = Duration::from_secs(30);

fn small() -> MockConfig {
    let mut config = fast();
    (config.engine.max_running, config.engine.max_waiting) = (4, 100);
    config
}

/// Waits until what is shown of the faults has this value.
async fn until_shown(mock: &TestMock, field: &str, value: serde_json::Value) {
    let start = Instant::now();
    while mock.get("/mock/fault").await.json()[field] != value {
        assert!(start.elapsed() < BOUND, "{field} never was {value}");
        sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until the mock has taken all that was sent to it so far, and done whatever takes it less than 300 ms. It
/// does one thing after the other: its own clock went on, and what came after that was answered.
async fn until_taken(mock: &TestMock) {
    mock.fault(json!({"added_latency_ms": 1, "for_ms": 300})).await;
    until_shown(mock, "added_latency_ms", json!(0)).await;
    for _ in 0..2 {
        mock.get("/mock/fault").await;
    }
}

/// Nothing has come from the mock so far, not even an end.
fn is_silent(tcp: &TcpStream) -> bool {
    tcp.try_read(&mut [0; 64]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

/// The connection ends without an answer.
async fn ends_unanswered(tcp: &mut TcpStream) {
    let read = timeout(BOUND, tcp.read(&mut [0; 64])).await.unwrap();
    assert!(matches!(read, Ok(0) | Err(_)), "nothing is answered: {read:?}");
}

async fn timed(mock: &TestMock, path: &str) -> Duration {
    let start = Instant::now();
    assert_eq!(mock.get(path).await.status, StatusCode::OK);
    start.elapsed()
}

#[tokio::test]
async fn work_is_slow_for_a_while() {
    let mock = TestMock::start(small());
    mock.fault(json!({"slow_factor": 20, "for_ms": 600_000})).await;
    let slow = timed(&mock, "/work?ms=10").await;
    assert!(slow >= Duration::from_millis(200), "{slow:?}");
    mock.send("DELETE", "/mock/fault", &[], "").await;
    let set = mock.fault(json!({"slow_factor": 20, "for_ms": 50})).await;
    assert_eq!(set["slow_factor"], 20.0);
    until_shown(&mock, "slow_factor", json!(1.0)).await;
    // If it were still slow, each would take longer than this; one that the machine slowed down is asked again.
    let start = Instant::now();
    while timed(&mock, "/work?ms=10").await >= Duration::from_millis(200) {
        assert!(start.elapsed() < BOUND, "it stays slow");
    }
}

#[tokio::test]
async fn completions_are_slow_too() {
    let mut config = fast();
    config.engine.decode_ms_per_token = 1.0;
    let mock = TestMock::start(config);
    mock.fault(json!({"slow_factor": 100})).await;
    let start = Instant::now();
    assert_eq!(mock.post(CHAT, &chat(3)).await.status, StatusCode::OK);
    // The first token comes with the prompt, the others take a millisecond each by themselves.
    assert!(start.elapsed() >= Duration::from_millis(200), "{:?}", start.elapsed());
}

#[tokio::test]
async fn fewer_places_are_left_for_a_while() {
    let mock = Arc::new(TestMock::start_observable(small()));
    let run = |count: usize| {
        let mock = Arc::clone(&mock);
        (0..count).map(move |_| {
            let mock = Arc::clone(&mock);
            tokio::spawn(async move { mock.get("/work?ms=600000").await.status })
        })
    };
    mock.fault(json!({"slots_share": 0.5})).await;
    let running: Vec<_> = run(4).collect();
    mock.until("waiting_requests", 0, 2.0).await;
    assert_eq!(mock.gauge("running_requests", 0).await, 2.0);
    mock.fault(json!({"slots_share": 1.0, "for_ms": 200})).await;
    assert_eq!(mock.gauge("running_requests", 0).await, 4.0);
    until_shown(&mock, "slots_share", json!(0.5)).await;
    // Those that run finish, and others wait.
    assert_eq!(mock.gauge("running_requests", 0).await, 4.0);
    let late: Vec<_> = run(1).collect();
    mock.until("waiting_requests", 0, 1.0).await;
    running.iter().chain(&late).for_each(|task| task.abort());
}

#[tokio::test]
async fn failures_of_work_take_no_place() {
    let mut config = small();
    (config.engine.max_running, config.engine.max_waiting) = (1, 0);
    let mock = Arc::new(TestMock::start_observable(config));
    let asking = Arc::clone(&mock);
    let running = tokio::spawn(async move { asking.get("/work?ms=600000").await.status });
    mock.until("running_requests", 0, 1.0).await;
    mock.fault(json!({"failure_rate": 1})).await;
    let failed = mock.send("POST", "/work?ms=600000", &[], "body").await;
    assert_eq!(failed.status, StatusCode::SERVICE_UNAVAILABLE);
    // Not "overloaded", which it would be with a place.
    assert_eq!(failed.json()["error"]["code"], "injected_fault");
    running.abort();
}

#[tokio::test]
async fn work_stands_still_with_the_engine() {
    let mock = Arc::new(TestMock::start_observable(small()));
    mock.fault(json!({"frozen": true})).await;
    let asking = Arc::clone(&mock);
    let waiting = tokio::spawn(async move { asking.get("/work?ms=1").await.status });
    mock.until("waiting_requests", 0, 1.0).await;
    assert_eq!(mock.gauge("running_requests", 0).await, 0.0);
    mock.fault(json!({"frozen": false})).await;
    assert_eq!(waiting.await.unwrap(), StatusCode::OK);
    // And it goes on by itself.
    let start = Instant::now();
    mock.fault(json!({"frozen": true, "for_ms": 300})).await;
    assert!(timed(&mock, "/work?ms=1").await <= start.elapsed());
    assert!(start.elapsed() >= Duration::from_millis(300), "{:?}", start.elapsed());
}

#[tokio::test]
async fn overlapping_changes_each_go_back_to_what_stands_without_them() {
    let mock = TestMock::start(small());
    mock.fault(json!({"added_latency_ms": 1, "failure_rate": 0.25})).await;
    mock.fault(json!({"added_latency_ms": 2, "reports": "stale", "for_ms": 60_000})).await;
    let shown = mock.fault(json!({"added_latency_ms": 3, "for_ms": 100})).await;
    assert_eq!((&shown["added_latency_ms"], &shown["reports"]), (&json!(3), &json!("stale")));
    until_shown(&mock, "added_latency_ms", json!(2)).await;
    mock.send("DELETE", "/mock/fault", &[], "").await;
    let shown = mock.get("/mock/fault").await.json();
    let none = json!({
        "added_latency_ms": 0, "cut": false, "dead": false, "failure_rate": 0.0, "frozen": false,
        "slots_share": 1.0, "reports": "live", "slow_factor": 1.0,
    });
    assert_eq!(shown, none);
}

#[tokio::test]
async fn what_can_t_be_is_said() {
    let mock = TestMock::start(small());
    for (change, says) in [
        (json!({"dead": true}), "dead: needs for_ms"),
        (json!({"cut": true}), "cut: needs for_ms"),
        (json!({"slow_factor": 0.001}), "slow_factor: allowed: 0.01 … 10000"),
        (json!({"slots_share": -1}), "slots_share: allowed: 0 … 1"),
        (json!({"for_ms": 5}), "for_ms: names no fault"),
    ] {
        let answer = mock.post("/mock/fault", &change).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{change}");
        assert!(answer.text().contains(says), "{change}: {}", answer.text());
    }
    assert_eq!(mock.get("/mock/fault").await.json()["dead"], false);
}

/// Connects until it is accepted, and answers when it was tried first, and whether it was ever refused.
async fn connect_again(mock: &TestMock) -> (Instant, bool) {
    let (start, mut refused) = (Instant::now(), false);
    loop {
        match TcpStream::connect(mock.address()).await {
            Ok(_) => return (start, refused),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::ConnectionRefused, "{error}");
                refused = true;
            }
        }
        assert!(start.elapsed() < BOUND, "it never came back");
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn the_dead_refuse_connections_cut_those_they_had_and_come_back() {
    for h2 in [false, true] {
        let mock = TestMock::start_observable(slow());
        let mock = Arc::new(if h2 { mock.over_h2() } else { mock });
        let mut idle = TcpStream::connect(mock.address()).await.unwrap();
        let mut stream = mock.begin("POST", CHAT, &[], &streamed(9).to_string()).await;
        stream.body_mut().frame().await.unwrap().unwrap();
        let mut asked = TcpStream::connect(mock.address()).await.unwrap();
        asked.write_all(b"GET /work?ms=600000 HTTP/1.1\r\nhost: mock\r\n\r\n").await.unwrap();
        mock.until("running_requests", 0, 2.0).await;
        // Who asks for it is still answered.
        let (start, lasts) = (Instant::now(), Duration::from_millis(700));
        assert_eq!(mock.fault(json!({"dead": true, "for_ms": 700})).await["dead"], true);
        for tcp in [&mut idle, &mut asked] {
            ends_unanswered(tcp).await;
        }
        let rest = timeout(BOUND, stream.into_body().collect()).await.unwrap();
        assert!(rest.is_err(), "a stream that is cut has no end");
        let (first_try, refused) = connect_again(&mock).await;
        // Unless this machine stood still until it was over.
        assert!(refused || first_try - start >= lasts, "dead, and it accepts");
        assert!(start.elapsed() >= lasts, "{:?}", start.elapsed());
        assert_eq!(mock.get("/work?ms=1").await.status, StatusCode::OK);
        // What it had is gone with the connections.
        mock.until("running_requests", 0, 0.0).await;
        assert_eq!(mock.get("/mock/fault").await.json()["dead"], false);
    }
}

#[tokio::test]
async fn one_can_die_again_and_again_on_the_same_address() {
    let mock = TestMock::start(small());
    for _ in 0..5 {
        mock.fault(json!({"dead": true, "for_ms": 50})).await;
        connect_again(&mock).await;
        assert_eq!(mock.get("/health").await.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn a_cut_answers_nothing_and_ends_with_closed_connections() {
    let mut config = small();
    config.engine.decode_ms_per_token = 100.0;
    let mock = Arc::new(TestMock::start_observable(config));
    // So long that it does not end here.
    let mut stream = mock.begin("POST", CHAT, &[], &streamed(3_000).to_string()).await;
    stream.body_mut().frame().await.unwrap().unwrap();
    let mut before = TcpStream::connect(mock.address()).await.unwrap();
    mock.fault(json!({"frozen": true})).await;
    before.write_all(b"GET /work?ms=1 HTTP/1.1\r\nhost: mock\r\n\r\n").await.unwrap();
    mock.until("waiting_requests", 0, 1.0).await;
    let mut idle = TcpStream::connect(mock.address()).await.unwrap();
    mock.fault(json!({"cut": true, "for_ms": 600_000})).await;
    let mut during = TcpStream::connect(mock.address()).await.unwrap();
    during.write_all(b"GET /health HTTP/1.1\r\nhost: mock\r\n\r\n").await.unwrap();
    // What was asked before is done now, and can't be told.
    mock.fault(json!({"frozen": false})).await;
    until_taken(&mock).await;
    assert!(is_silent(&before) && is_silent(&during), "something passes");
    mock.fault(json!({"cut": false})).await;
    ends_unanswered(&mut before).await;
    ends_unanswered(&mut during).await;
    // A body that was under way stops, and does not end well.
    let rest = timeout(BOUND, stream.into_body().collect()).await.unwrap();
    assert!(rest.is_err(), "{rest:?}");
    assert_eq!(mock.get("/mock/fault").await.json()["cut"], false);
    assert_eq!(mock.get("/work?ms=1").await.status, StatusCode::OK);
    // Who asked for nothing meanwhile has a connection as good as before.
    idle.write_all(b"GET /health HTTP/1.1\r\nhost: mock\r\n\r\n").await.unwrap();
    let mut answer = [0; 12];
    idle.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
}

#[tokio::test]
async fn a_cut_ends_by_itself() {
    let mock = TestMock::start(small());
    let start = Instant::now();
    assert_eq!(mock.fault(json!({"cut": true, "for_ms": 200})).await["cut"], true);
    until_shown(&mock, "cut", json!(false)).await;
    assert!(start.elapsed() >= Duration::from_millis(200), "{:?}", start.elapsed());
    assert_eq!(mock.get("/work?ms=1").await.status, StatusCode::OK);
}

#[tokio::test]
async fn faults_are_shown_and_ended_while_it_is_cut() {
    let mock = Arc::new(TestMock::start(small()));
    mock.fault(json!({"cut": true, "for_ms": 600_000})).await;
    let mut during = TcpStream::connect(mock.address()).await.unwrap();
    during.write_all(b"GET /health HTTP/1.1\r\nhost: mock\r\n\r\n").await.unwrap();
    assert_eq!(mock.get("/mock/fault").await.json()["cut"], true);
    until_taken(&mock).await;
    assert!(is_silent(&during));
    mock.fault(json!({"cut": false})).await;
    ends_unanswered(&mut during).await;
    assert_eq!(mock.get("/health").await.status, StatusCode::OK);
}

#[tokio::test]
async fn over_http2_the_whole_connection_ends_with_the_cut() {
    let mock = Arc::new(TestMock::start(small()));
    let io = TokioIo::new(TcpStream::connect(mock.address()).await.unwrap());
    let (sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
    let connection = tokio::spawn(connection);
    let get = |path: &str| {
        let uri = format!("http://{}{path}", mock.address());
        let request = Request::builder().uri(uri).body(Empty::<Bytes>::new()).unwrap();
        let mut sender = sender.clone();
        async move { sender.send_request(request).await }
    };
    assert_eq!(Answer::read(get("/health").await.unwrap()).await.status, StatusCode::OK);
    mock.fault(json!({"cut": true, "for_ms": 600_000})).await;
    let held = tokio::spawn(get("/work?ms=1"));
    tokio::task::yield_now().await;
    // On the same connection, where it comes behind the other.
    assert_eq!(get("/mock/fault").await.unwrap().status(), StatusCode::OK);
    until_taken(&mock).await;
    assert!(!held.is_finished());
    mock.fault(json!({"cut": false})).await;
    assert!(timeout(BOUND, held).await.unwrap().unwrap().is_err());
    let _ = timeout(BOUND, connection).await.unwrap();
}
