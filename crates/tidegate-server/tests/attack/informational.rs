//! Upstreams that send informational responses, a few or without end.

use crate::support::{Client, RawUpstream, TestGateway};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;

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
    let upstream = flooding().await;
    let gateway = TestGateway::start("[listen]\nthreads = 1\n", &[upstream.address]);
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

#[tokio::test]
async fn as_many_as_are_allowed_are_read_with_each_request_of_a_connection() {
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
    let body = EARLY_HINTS.repeat(40);
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len());
    let pieces: &'static [&'static str] = Box::leak(Box::new([&*head.leak(), &*body.leak()]));
    let upstream = RawUpstream::saying(pieces).await;
    let gateway = TestGateway::start("", &[upstream.address]);
    assert_eq!(Client::new(gateway.address).get("/").await.text(), pieces[1]);
}
