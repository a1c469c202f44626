//! Clients that close their side of the connection after their request, and clients that are gone.

use crate::measure::alone;
use crate::support::{RawUpstream, TestGateway, Upstream, eventually};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const GET: &[u8] = b"GET /a HTTP/1.1\r\nhost: x\r\n\r\n";
const POST: &[u8] = b"POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\n\r\nhello";

/// The final response: interim ones are passed over, as every client of HTTP/1.1 does.
fn final_of(answer: &str) -> &str {
    answer.trim_start_matches("HTTP/1.1 100 Continue\r\n\r\n")
}

#[tokio::test]
async fn a_client_that_half_closes_gets_its_answer() {
    let _alone = alone().await;
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    for request in [GET, POST] {
        upstream.gate.close();
        let mut tcp = TcpStream::connect(gateway.address).await.unwrap();
        tcp.write_all(request).await.unwrap();
        tcp.shutdown().await.unwrap();
        let asked = upstream.seen().len();
        eventually("it is at the upstream", || upstream.seen().len() > asked).await;
        // Longer than the wait for a reset: the client must be found alive, and not only not yet found gone.
        tokio::time::sleep(Duration::from_millis(100)).await;
        upstream.gate.open();
        let mut answer = String::new();
        tcp.read_to_string(&mut answer).await.unwrap();
        let last = final_of(&answer);
        assert!(last.starts_with("HTTP/1.1 200") && last.ends_with("hello"), "{answer}");
    }
    gateway.balances().await;
}

#[tokio::test]
async fn a_half_closed_client_gets_a_long_answer_whole_and_unspoiled() {
    let _alone = alone().await;
    const LENGTH: usize = 4 << 20;
    let upstream = RawUpstream::start(|mut tcp| async move {
        if RawUpstream::read_head(&mut tcp).await {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {LENGTH}\r\n\r\n");
            let _ = tcp.write_all(head.as_bytes()).await;
            let _ = tcp.write_all(&vec![b'x'; LENGTH]).await;
        }
    })
    .await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let mut tcp = TcpStream::connect(gateway.address).await.unwrap();
    tcp.write_all(GET).await.unwrap();
    tcp.shutdown().await.unwrap();
    let mut answer = String::new();
    tcp.read_to_string(&mut answer).await.unwrap();
    let (_, body) = final_of(&answer).split_once("\r\n\r\n").unwrap();
    assert!(body.len() == LENGTH && body.bytes().all(|byte| byte == b'x'));
    gateway.balances().await;
}

#[tokio::test]
async fn a_client_that_is_gone_frees_its_slot_whatever_it_spoke() {
    let _alone = alone().await;
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let old = b"GET /a HTTP/1.0\r\nhost: x\r\n\r\n";
    for request in [GET, POST, old] {
        let asked = upstream.seen().len();
        let mut tcp = TcpStream::connect(gateway.address).await.unwrap();
        tcp.write_all(request).await.unwrap();
        eventually("it is at the upstream", || upstream.seen().len() > asked).await;
        let start = Instant::now();
        drop(tcp);
        eventually("its slot is free", || gateway.in_flight() == 0).await;
        // Far below every timeout: it was noticed, and did not run out.
        assert!(start.elapsed() < Duration::from_secs(10), "after {:?}", start.elapsed());
    }
    gateway.balances().await;
}

#[tokio::test]
async fn a_client_that_half_closed_and_then_leaves_frees_its_slot() {
    let _alone = alone().await;
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let mut tcp = TcpStream::connect(gateway.address).await.unwrap();
    tcp.write_all(GET).await.unwrap();
    tcp.shutdown().await.unwrap();
    eventually("it is at the upstream", || !upstream.seen().is_empty()).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(gateway.in_flight(), 1, "it waits for its answer");
    drop(tcp);
    eventually("its slot is free", || gateway.in_flight() == 0).await;
}
