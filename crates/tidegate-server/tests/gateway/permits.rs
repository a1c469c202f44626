//! Permits balance to zero whatever happens to the requests that hold them.

use crate::support::{Client, RawUpstream, TestGateway, Upstream, eventually, undisturbed};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[tokio::test]
async fn a_client_that_leaves_cancels_the_upstream_s_request_and_frees_its_permit() {
    let (told, mut left) = tokio::sync::mpsc::channel(64);
    let (sent, mut came) = tokio::sync::mpsc::channel(64);
    let upstream = RawUpstream::start(move |mut tcp| {
        let (told, sent) = (told.clone(), sent.clone());
        async move {
            if RawUpstream::read_head(&mut tcp).await {
                sent.send(()).await.unwrap();
                // Nothing is sent after the head, so this returns only when the gateway hangs up.
                let end = tcp.read_u8().await;
                told.send(end.is_err()).await.unwrap();
            }
        }
    })
    .await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let mut clients = Vec::new();
    for _ in 0..20 {
        let mut tcp = TcpStream::connect(gateway.address).await.unwrap();
        tcp.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        clients.push(tcp);
    }
    // At the upstream, and not only admitted: one that leaves before it is sent, the upstream never sees.
    for _ in 0..20 {
        came.recv().await.unwrap();
    }
    assert_eq!(gateway.in_flight(), 20);
    drop(clients);
    for _ in 0..20 {
        assert!(left.recv().await.unwrap(), "the upstream sees the end");
    }
    gateway.balances().await;
    let stats = gateway.stats().await;
    assert_eq!(
        stats["admission"]["finished"][2]["ignored"], 20,
        "leaving says nothing about the load"
    );
}

#[tokio::test]
async fn streams_that_http2_clients_reset_free_their_permits() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let client = Client::h2(gateway.address);
    let tasks: Vec<_> = (0..20)
        .map(|_| {
            let request = client.request("GET", "/").body(Full::<Bytes>::default()).unwrap();
            tokio::spawn(async move { client.begin(request).await.map(drop) })
        })
        .collect();
    eventually("all are in flight", || gateway.in_flight() == 20).await;
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
    gateway.balances().await;
}

#[tokio::test]
async fn a_client_that_leaves_in_the_middle_of_an_answer_frees_its_permit() {
    let upstream = RawUpstream::start(|mut tcp| async move {
        RawUpstream::read_head(&mut tcp).await;
        let _ = tcp.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\nonly this").await;
        let _ = tcp.read_u8().await;
    })
    .await;
    let gateway = TestGateway::start("", &[upstream.address]);
    for client in [Client::new(gateway.address), Client::h2(gateway.address)] {
        let request = client.request("GET", "/").body(Full::<Bytes>::default()).unwrap();
        let mut body = client.begin(request).await.unwrap().into_body();
        assert!(body.frame().await.unwrap().unwrap().is_data());
        assert_eq!(gateway.in_flight(), 1, "held until the answer's end");
        drop(body);
        gateway.balances().await;
    }
}

/// An upstream whose answer never ends.
async fn endless() -> RawUpstream {
    RawUpstream::start(|mut tcp| async move {
        RawUpstream::read_head(&mut tcp).await;
        let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        let mut chunk = b"10000\r\n".to_vec();
        chunk.extend_from_slice(&[b'x'; 0x10000]);
        chunk.extend_from_slice(b"\r\n");
        let _ = tcp.write_all(head).await;
        while tcp.write_all(&chunk).await.is_ok() {}
    })
    .await
}

#[tokio::test]
async fn a_client_that_takes_nothing_of_its_answer_is_cut() {
    let upstream = endless().await;
    let config = "[listen]\nheader_timeout_ms = 100\n[proxy]\nstream_idle_timeout_ms = 200\n";
    let gateway = TestGateway::start(config, &[upstream.address]);
    let tracker = gateway.inner().admission().tracker();
    let tcp = undisturbed("a head comes within its time", async || {
        let start = Instant::now();
        let mut tcp = TcpStream::connect(gateway.address).await.unwrap();
        let _ = tcp.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
        // What it takes a look at is not taken.
        let answered = matches!(tcp.peek(&mut [0; 12]).await, Ok(1..));
        if answered && tracker.stats().normal_acquired == 1 {
            return Some(tcp);
        }
        assert!(start.elapsed() >= Duration::from_millis(100), "{:?}", start.elapsed());
        None
    })
    .await;
    // Reads nothing; buffers fill; nobody waits for ever.
    gateway.balances().await;
    drop(tcp);
}

#[tokio::test]
async fn upstream_resets_free_their_permits() {
    let upstream = RawUpstream::start(|mut tcp| async move {
        RawUpstream::read_head(&mut tcp).await;
        socket2::SockRef::from(&tcp).set_linger(Some(Duration::ZERO)).unwrap();
    })
    .await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let client = Client::new(gateway.address);
            tokio::spawn(async move { client.get("/").await.status.as_u16() })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap(), 502);
    }
    gateway.balances().await;
}

#[tokio::test]
async fn an_http2_client_that_opens_no_window_holds_no_permit() {
    let upstream = endless().await;
    let config = "[proxy]\nstream_idle_timeout_ms = 400\n";
    let gateway = TestGateway::start(config, &[upstream.address]);
    let start = Instant::now();
    let tcp = TcpStream::connect(gateway.address).await.unwrap();
    let (mut sender, connection) =
        h2::client::Builder::new().initial_window_size(0).handshake::<_, Bytes>(tcp).await.unwrap();
    tokio::spawn(connection);
    let mut streams = Vec::new();
    for _ in 0..20 {
        let request = http::Request::get(format!("http://{}/", gateway.address)).body(()).unwrap();
        let (response, _) = sender.send_request(request, true).unwrap();
        streams.push(response.await.unwrap());
    }
    assert_eq!(gateway.inner().admission().tracker().stats().normal_acquired, 20);
    // Unless the first of them has come back already.
    let held = gateway.in_flight();
    assert!(held == 20 || start.elapsed() >= Duration::from_millis(400), "{held} are held");
    // The connection stays open and answers pings; the permits come back all the same.
    gateway.balances().await;
    assert!(sender.ready().await.is_ok());
    drop(streams);
}
