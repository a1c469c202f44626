use crate::support::{Client, TestGateway, Upstream, eventually, raw, undisturbed};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";

#[tokio::test]
async fn one_connection_too_many_is_told_so() {
    let upstream = Upstream::start().await;
    for reserve in [0, 1] {
        let settings = format!("[listen]\nconnections_max = 2\nconnections_reserve = {reserve}\n");
        let gateway = TestGateway::start(&settings, &[upstream.address]);
        let one = TcpStream::connect(gateway.address).await.unwrap();
        let _two = TcpStream::connect(gateway.address).await.unwrap();
        eventually("both are served", || gateway.inner().metrics().connections == 2).await;
        let answer = raw(gateway.address, GET).await;
        let refused = answer.starts_with("HTTP/1.1 503") && answer.contains("connection_limit");
        assert!(refused && answer.contains("connection: close"), "{answer}");
        assert!(upstream.seen().is_empty() || reserve > 0, "it was not sent");
        assert_eq!(gateway.stats().await["connections_refused"], 1);
        assert_eq!(Client::new(gateway.admin).get("/health/live").await.status, 200);
        drop(one);
        eventually("a place is free", || gateway.inner().metrics().connections == 1).await;
        assert_eq!(Client::new(gateway.address).get("/").await.status, 200, "no latch");
    }
}

#[tokio::test]
async fn connections_are_spread_over_the_threads() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("[listen]\nthreads = 4\n", &[upstream.address]);
    let mut held = Vec::new();
    for _ in 0..40 {
        held.push(TcpStream::connect(gateway.address).await.unwrap());
    }
    eventually("all are served", || gateway.inner().metrics().connections == 40).await;
    assert_eq!(gateway.inner().connections_by_thread(), [10; 4]);
}

#[tokio::test]
async fn a_client_that_says_nothing_or_half_a_head_is_closed() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("[listen]\nheader_timeout_ms = 100\n", &[upstream.address]);
    for start in ["", "P", "PRI * HT", "GET / HTTP/1.1\r\nhost: x\r\nx-slow"] {
        let mut tcp = TcpStream::connect(gateway.address).await.unwrap();
        tcp.write_all(start.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        // Returns when the gateway closes; a reset is a close.
        let _ = tcp.read_to_end(&mut rest).await;
    }
    eventually("none is left", || gateway.inner().metrics().connections == 0).await;
}

#[tokio::test]
async fn a_busy_connection_outlives_the_time_for_quiet_ones() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start("[listen]\nheader_timeout_ms = 100\n", &[upstream.address]);
    let client = Client::new(gateway.address);
    let answer = undisturbed("a head comes within its time", async || {
        let start = Instant::now();
        let answer = tokio::spawn(async move { client.get("/").await });
        let settled = || gateway.in_flight() == 1 || answer.is_finished();
        eventually("it is in flight, or was too late", settled).await;
        let late = start.elapsed() >= Duration::from_millis(100);
        assert!(late || !answer.is_finished(), "closed after {:?}", start.elapsed());
        (!answer.is_finished()).then_some(answer)
    })
    .await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    upstream.gate.open();
    assert_eq!(answer.await.unwrap().status, 200);
}
