//! Requests of HTTP/2 that would be two, or another one, when they are written as HTTP/1.1.

use crate::h2_frames::*;
use crate::measure::alone;
use crate::recorder::Recorder;
use crate::support::{Client, TestGateway};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

/// Fields that a request of HTTP/2 can't have.
const FIELDS: [(&str, &str); 14] = [
    ("transfer-encoding", "chunked"),
    ("connection", "close"),
    ("upgrade", "websocket"),
    ("keep-alive", "1"),
    ("proxy-connection", "close"),
    ("te", "chunked"),
    ("content-length", "0, 5"),
    ("content-length", "+5"),
    ("x", "a\r\ntransfer-encoding: chunked"),
    ("x", "a\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n"),
    ("x", "a\nb"),
    ("x", "a\0b"),
    ("x: y\r\nz", "a"),
    ("X-Upper", "a"),
];

/// Lines of a request that HTTP/1.1 would read as more than one.
const LINES: [(&str, &str, &str); 8] = [
    ("GET", "/p HTTP/1.1\r\nhost: y\r\nx: z", "x"),
    ("GET", "/p\r\n\r\nGET /smuggled HTTP/1.1", "x"),
    ("GET", "/p q", "x"),
    ("GET", "", "x"),
    ("GET", "p", "x"),
    ("GET /smuggled HTTP/1.1\r\nx:", "/p", "x"),
    ("GET", "/p", "x\r\ny: z"),
    ("GET", "/p", "x y"),
];

/// Sends a request, reads until the gateway says something about its stream or closes, and then asks for another.
async fn attack(gateway: &TestGateway, upstream: &Recorder, block: &[u8], body: &[u8]) {
    let mut tcp = connect(gateway.address, &[]).await;
    let _ = tcp.write_all(&frame(HEADERS, END_HEADERS, 1, block)).await;
    let _ = tcp.write_all(&frame(DATA, END_STREAM, 1, body)).await;
    let answered = async {
        let mut head = [0; 9];
        while tcp.read_exact(&mut head).await.is_ok() && head[8] != 1 {
            let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
            let _ = tcp.read_exact(&mut payload).await;
        }
    };
    let waited = timeout(Duration::from_secs(20), answered).await;
    let told = String::from_utf8_lossy(block);
    assert!(waited.is_ok(), "no answer to {told:?}");
    for seen in upstream.take() {
        let framings = seen.field("content-length").len() + seen.field("transfer-encoding").len();
        let clean = seen.head.split("\r\n").all(|line| !line.contains(['\r', '\n', '\0']));
        let same = seen.target() == "/p" && seen.field("host") == ["x"] && seen.body == body;
        assert!(framings <= 1 && clean && same, "{told:?} became {seen:?}");
        assert!(seen.field("x").is_empty() && seen.field("upgrade").is_empty(), "{seen:?}");
    }
    assert_eq!(Client::new(gateway.address).get("/after").await.text(), "/after", "{told:?}");
    assert_eq!(upstream.take().len(), 1, "{told:?}");
}

#[tokio::test]
async fn a_request_of_http2_is_one_request_of_http1_or_none() {
    let _alone = alone().await;
    let upstream = Recorder::start().await;
    let gateway = TestGateway::start("[listen]\nthreads = 1\n", &[upstream.address]);
    for field in FIELDS {
        let block = [request("POST", "/p"), fields(&[field])].concat();
        attack(&gateway, &upstream, &block, b"hello").await;
    }
    for (method, path, authority) in LINES {
        let all =
            [(":method", method), (":scheme", "http"), (":authority", authority), (":path", path)];
        attack(&gateway, &upstream, &fields(&all), b"").await;
    }
    gateway.balances().await;
}

#[tokio::test]
async fn a_body_of_another_length_than_it_says_reaches_nobody_whole() {
    let _alone = alone().await;
    let upstream = Recorder::start().await;
    let gateway = TestGateway::start("[listen]\nthreads = 1\n", &[upstream.address]);
    for (length, body) in [("1", "hello"), ("9", "hello"), ("0", "GET /smuggled HTTP/1.1\r\n\r\n")]
    {
        let block = [request("POST", "/p"), fields(&[("content-length", length)])].concat();
        let mut tcp = connect(gateway.address, &[]).await;
        let _ = tcp.write_all(&frame(HEADERS, END_HEADERS, 1, &block)).await;
        let _ = tcp.write_all(&frame(DATA, END_STREAM, 1, body.as_bytes())).await;
        gateway.balances().await;
        for _ in 0..3 {
            assert_eq!(Client::new(gateway.address).get("/after").await.text(), "/after");
        }
        let seen = upstream.take();
        let short = |body: &[u8]| body.len().to_string() == length;
        let whole = seen.iter().filter(|seen| seen.target() != "/after");
        assert!(whole.clone().all(|seen| seen.target() == "/p" && short(&seen.body)), "{seen:?}");
    }
}
