//! Upstreams that send informational responses, a few or without end.

use crate::measure::alone;
use crate::support::{Client, RawUpstream, TestGateway};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

const EARLY_HINTS: &str = "HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\n";
const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// The upstream stops by itself after this long, so that a gateway that reads for ever still ends its test.
const FLOOD: Duration = Duration::from_secs(5);

async fn flooding() -> RawUpstream {
    RawUpstream::start(|mut tcp| async move {
        if !RawUpstream::read_head(&mut tcp).await {
            return;
        }
        let many = EARLY_HINTS.repeat(1_000);
        let start = Instant::now();
        while start.elapsed() < FLOOD && tcp.write_all(many.as_bytes()).await.is_ok() {}
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn informational_responses_without_end_are_502_and_health_stays_fast() {
    let _alone = alone().await;
    let upstream = flooding().await;
    let gateway = TestGateway::start("[listen]\nthreads = 1\n", &[upstream.address]);
    is_cut_off(&gateway).await;
}

/// Two requests to the upstream are 502 before it stops by itself, and health answers meanwhile.
async fn is_cut_off(gateway: &TestGateway) {
    let client = Client::new(gateway.address);
    assert_eq!(client.get("/health/live").await.status, 200);
    let attacks = [0; 2].map(|_| tokio::spawn(async move { client.get("/").await }));
    for _ in 0..20 {
        assert_eq!(client.get("/health/live").await.status, 200);
    }
    let start = Instant::now();
    for attack in attacks {
        let answer = attack.await.unwrap();
        assert_eq!(answer.status, 502);
        assert_eq!(answer.json()["reason"], "bad_answer", "{}", answer.text());
    }
    assert!(start.elapsed() < FLOOD / 2, "read for {:?}", start.elapsed());
    gateway.balances().await;
}

/// An upstream of HTTP/2, frame by frame, that sends informational responses to every request until `FLOOD` is
/// over.
async fn flooding_h2() -> RawUpstream {
    RawUpstream::start(|mut tcp| async move {
        let mut preface = [0; 24];
        if tcp.read_exact(&mut preface).await.is_err() {
            return;
        }
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        let _ = tcp.write_all(&settings).await;
        let stream = loop {
            let mut head = [0; 9];
            if tcp.read_exact(&mut head).await.is_err() {
                return;
            }
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            let _ = tcp.read_exact(&mut payload).await;
            if head[3] == 1 {
                break [head[5], head[6], head[7], head[8]];
            }
        };
        // HEADERS with END_HEADERS: a literal field with the name `:status`, which is the eighth of the static
        // table.
        let mut hints = vec![0, 0, 5, 1, 4];
        hints.extend(stream);
        hints.extend([0x08, 3, b'1', b'0', b'3']);
        let many = hints.repeat(1_000);
        let start = Instant::now();
        while start.elapsed() < FLOOD && tcp.write_all(&many).await.is_ok() {}
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_over_http2_is_502_and_health_stays_fast() {
    let _alone = alone().await;
    let upstream = flooding_h2().await;
    let url = format!("[[upstream]]\nurl = \"h2c://{}\"\n", upstream.address);
    let gateway = TestGateway::start(&format!("[listen]\nthreads = 1\n{url}"), &[]);
    is_cut_off(&gateway).await;
}

#[tokio::test]
async fn as_many_as_are_allowed_are_read_over_http2() {
    let _alone = alone().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (tcp, _) = listener.accept().await.unwrap();
            let Ok(mut connection) = h2::server::handshake(tcp).await else { continue };
            while let Some(Ok((_, mut respond))) = connection.accept().await {
                for _ in 0..16 {
                    let hints = http::Response::builder().status(103).body(()).unwrap();
                    respond.send_informational(hints).unwrap();
                }
                let mut body = respond.send_response(http::Response::new(()), false).unwrap();
                body.send_data(bytes::Bytes::from_static(b"ok"), true).unwrap();
            }
        }
    });
    let config = format!("[listen]\nthreads = 1\n[[upstream]]\nurl = \"h2c://{address}\"\n");
    let gateway = TestGateway::start(&config, &[]);
    for _ in 0..5 {
        assert_eq!(Client::new(gateway.address).get("/").await.text(), "ok");
    }
}

#[tokio::test]
async fn as_many_as_are_allowed_are_read_with_each_request_of_a_connection() {
    let _alone = alone().await;
    let upstream = RawUpstream::start(|mut tcp| async move {
        while RawUpstream::read_head(&mut tcp).await {
            let answer = EARLY_HINTS.repeat(16) + OK;
            if tcp.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    })
    .await;
    let gateway = TestGateway::start("[listen]\nthreads = 1\n", &[upstream.address]);
    for _ in 0..5 {
        assert_eq!(Client::new(gateway.address).get("/").await.text(), "ok");
    }
}

#[tokio::test]
async fn a_body_that_reads_like_informational_responses_is_passed_on() {
    let _alone = alone().await;
    let body = EARLY_HINTS.repeat(40);
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
    let pieces: &'static [&'static str] = Box::leak(Box::new([&*head.leak(), &*body.leak()]));
    let upstream = RawUpstream::saying(pieces).await;
    let gateway = TestGateway::start("", &[upstream.address]);
    assert_eq!(Client::new(gateway.address).get("/").await.text(), pieces[1]);
}
