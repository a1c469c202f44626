//! Bodies that drip, so that each holds a slot for as long as its client likes.

use crate::measure::{alone, descriptors, resident_kib, slowest_check};
use crate::support::{RawUpstream, TestGateway, Upstream, eventually};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

const SETTINGS: &str = "[listen]\nbody_rate_min = 10000\nbody_grace_ms = 200\n";
const DRIPS: u32 = 8;

/// Sends a byte now and then until the gateway says something, which is returned.
async fn drip(gateway: &TestGateway, head: &str) -> String {
    let mut tcp = TcpStream::connect(gateway.address).await.unwrap();
    tcp.write_all(head.as_bytes()).await.unwrap();
    let (mut from, mut to) = tcp.split();
    let mut answer = String::new();
    let dripping = async {
        loop {
            if to.write_all(b"x").await.is_err() {
                std::future::pending::<()>().await;
            }
            sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        read = from.read_to_string(&mut answer) => drop(read),
        () = dripping => {}
        // Only ends a test that has failed.
        () = sleep(Duration::from_secs(20)) => {}
    }
    answer
}

#[tokio::test]
async fn dripping_bodies_are_408_and_free_their_slots_and_upstreams() {
    let _alone = alone().await;
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start(SETTINGS, &[upstream.address]);
    let head = "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n";
    let attacks = (0..DRIPS).map(|_| drip(&gateway, head));
    for answer in futures_util::future::join_all(attacks).await {
        assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("upload_slow"), "{answer}");
    }
    gateway.balances().await;
    eventually("the upstream's requests are cancelled", || upstream.seen().len() == DRIPS as usize)
        .await;
    assert!(upstream.seen().iter().all(|seen| seen.body.is_empty()), "broken off");
}

#[tokio::test]
async fn bodies_that_never_come_are_408_and_free_their_slots() {
    const STALLED: usize = 50;
    let _alone = alone().await;
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start(SETTINGS, &[upstream.address]);
    slowest_check(&gateway).await;
    let (resident, open) = (resident_kib(), descriptors());
    let head = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n";
    let mut stalled = Vec::new();
    for _ in 0..STALLED {
        let mut tcp = TcpStream::connect(gateway.address).await.unwrap();
        tcp.write_all(head).await.unwrap();
        stalled.push(tcp);
    }
    slowest_check(&gateway).await;
    for mut tcp in stalled {
        let mut answer = String::new();
        let _ = timeout(Duration::from_secs(20), tcp.read_to_string(&mut answer)).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    }
    gateway.balances().await;
    eventually("their descriptors are closed", || descriptors() < open + 10).await;
    let growth = resident_kib().saturating_sub(resident);
    assert!(growth < 32 * 1024, "{growth} KiB more");
}

#[tokio::test]
async fn a_client_is_not_slow_while_its_upstream_takes_nothing() {
    let _alone = alone().await;
    const LENGTH: usize = 32 << 20;
    // Reads the head, then nothing for six times the grace, then all.
    let upstream = RawUpstream::start(|mut tcp| async move {
        if !RawUpstream::read_head(&mut tcp).await {
            return;
        }
        sleep(Duration::from_secs(3)).await;
        let mut body = vec![0; LENGTH];
        if tcp.read_exact(&mut body).await.is_ok() {
            let _ = tcp.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await;
        }
    })
    .await;
    // Three seconds at this rate are more than the sockets' buffers take: the client would miss it if they
    // counted.
    let settings = "[listen]\nbody_rate_min = 8000000\nbody_grace_ms = 500\n";
    let gateway = TestGateway::start(settings, &[upstream.address]);
    let mut tcp = TcpStream::connect(gateway.address).await.unwrap();
    let head = format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {LENGTH}\r\n\r\n");
    tcp.write_all(head.as_bytes()).await.unwrap();
    let (mut from, mut to) = tcp.split();
    let mut answer = vec![0; 15];
    let sending = async { to.write_all(&vec![b'x'; LENGTH]).await.unwrap() };
    let both = async { tokio::join!(sending, from.read_exact(&mut answer)) };
    timeout(Duration::from_secs(60), both).await.unwrap().1.unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200 OK"), "{}", String::from_utf8_lossy(&answer));
}

#[tokio::test]
async fn grpc_streams_are_not_held_to_a_rate() {
    let _alone = alone().await;
    let upstream = RawUpstream::start(|mut tcp| async move {
        let mut all = Vec::new();
        let _ = tcp.read_to_end(&mut all).await;
    })
    .await;
    let gateway = TestGateway::start(SETTINGS, &[upstream.address]);
    let head = "POST /s/m HTTP/1.1\r\nhost: x\r\ncontent-type: application/grpc\r\n\
                transfer-encoding: chunked\r\n\r\n1\r\nx\r\n";
    let mut tcp = TcpStream::connect(gateway.address).await.unwrap();
    tcp.write_all(head.as_bytes()).await.unwrap();
    eventually("it is in flight", || gateway.in_flight() == 1).await;
    let mut answer = [0; 1];
    let silent = timeout(Duration::from_secs(1), tcp.read(&mut answer)).await;
    assert!(silent.is_err(), "still under way after five times the grace: {silent:?}");
}
