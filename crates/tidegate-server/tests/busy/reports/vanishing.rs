//! Upstreams that go away between the pick and the answer.

use crate::support::{Client, RawUpstream, TestGateway, eventually};
use crate::traffic::{Flood, addresses, count, without_queue};
use crate::upstream::Upstream;
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Nobody looks whether upstreams are there but the requests.
const UNWATCHED: &str = "[proxy]\nhealth_interval_ms = 600000\n[routing]\npick = \"round_robin\"\n\
                         active_requests_threshold = 4\n";

/// Reads a whole request and resets the connection in place of an answer.
async fn resetter() -> (RawUpstream, Arc<AtomicUsize>) {
    let read = Arc::new(AtomicUsize::new(0));
    let upstream = RawUpstream::start({
        let read = Arc::clone(&read);
        move |tcp| read_and_reset(tcp, Arc::clone(&read))
    })
    .await;
    (upstream, read)
}

async fn read_and_reset(mut tcp: TcpStream, read: Arc<AtomicUsize>) {
    if RawUpstream::read_head(&mut tcp).await {
        read.fetch_add(1, Ordering::SeqCst);
        // What is short has come with its head, or does so at once.
        let mut body = [0; 4];
        let _ =
            tokio::time::timeout(std::time::Duration::from_millis(20), tcp.read(&mut body)).await;
        socket2::SockRef::from(&tcp).set_linger(Some(std::time::Duration::ZERO)).unwrap();
    }
}

fn request(client: Client, method: &str, key: Option<&str>) -> Request<Full<Bytes>> {
    let mut request = client.request(method, "/work");
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    let body = if method == "GET" { "" } else { "body" };
    request.body(Full::from(body)).unwrap()
}

#[tokio::test]
async fn what_was_not_sent_goes_to_another_and_is_sent_once() {
    let upstreams = [Upstream::start().await, Upstream::start().await];
    let gateway = TestGateway::start(UNWATCHED, &addresses(&upstreams));
    let client = Client::new(gateway.address);
    for _ in 0..4 {
        assert_eq!(client.send(request(client, "POST", None)).await.status, 200);
    }
    upstreams[0].vanished().await;
    let before = upstreams[1].came().len();
    for _ in 0..20 {
        assert_eq!(client.send(request(client, "POST", None)).await.status, 200);
    }
    assert_eq!(upstreams[1].came().len(), before + 20, "each exactly once");
    gateway.balances().await;
}

#[tokio::test]
async fn an_upstream_that_vanishes_with_its_places_taken_gives_them_back() {
    let upstreams = Upstream::several(2).await;
    let gateway = without_queue(UNWATCHED, &addresses(&upstreams));
    let client = Client::new(gateway.address);
    let mut held = Flood::new(client, 8, || request(client, "POST", None));
    eventually("all places are taken", || upstreams.iter().all(|w| w.active() == 4)).await;
    assert_eq!(client.send(request(client, "POST", None)).await.status, 503);
    upstreams[0].vanish();
    let cut = held.answers(4).await;
    assert_eq!(count(&cut, 502), 4, "what may have begun is not repeated");
    assert_eq!(upstreams[1].came().len(), 4);
    upstreams[1].open();
    assert_eq!(count(&held.rest().await, 200), 4);
    gateway.balances().await;
    for _ in 0..20 {
        assert_eq!(client.send(request(client, "POST", None)).await.status, 200);
    }
}

#[tokio::test]
async fn what_may_have_begun_is_repeated_only_if_that_is_safe() {
    for (method, key, repeated) in [
        ("POST", None, false),
        ("PATCH", None, false),
        ("POST", Some("7"), true),
        ("GET", None, true),
        ("PUT", None, true),
        ("DELETE", None, true),
    ] {
        let ((breaking, read), sound) = (resetter().await, Upstream::start().await);
        let gateway = TestGateway::start(UNWATCHED, &[breaking.address, sound.address]);
        let client = Client::new(gateway.address);
        // One of the first two goes to each.
        let mut statuses = Vec::new();
        while read.load(Ordering::SeqCst) == 0 {
            statuses.push(client.send(request(client, method, key)).await.status.as_u16());
        }
        let sent = statuses.len();
        let lost = statuses.iter().filter(|status| **status == 502).count();
        assert_eq!(read.load(Ordering::SeqCst), 1, "{method}: nobody is asked twice");
        assert_eq!(lost, usize::from(!repeated), "{method} {key:?}: {statuses:?}");
        let came = sound.came();
        assert_eq!(came.len(), sent - lost, "{method} {key:?}");
        let body = if method == "GET" { "" } else { "body" };
        assert!(came.iter().all(|one| one.body == body), "{method} {key:?}: {came:?}");
        let upstream = &gateway.stats().await["upstreams"][0];
        assert_eq!(upstream["failed"], 1, "{method} {key:?}");
        assert_eq!(upstream["retried"], u64::from(repeated), "{method} {key:?}");
        gateway.balances().await;
    }
}

#[tokio::test]
async fn a_body_that_is_too_long_to_be_kept_is_sent_once() {
    let ((breaking, read), sound) = (resetter().await, Upstream::start().await);
    let gateway = TestGateway::start(UNWATCHED, &[breaking.address, sound.address]);
    let client = Client::new(gateway.address);
    let long = vec![b'x'; 100_000];
    let mut lost = 0;
    while read.load(Ordering::SeqCst) == 0 {
        let put = client.request("PUT", "/work").body(Full::from(long.clone())).unwrap();
        lost += usize::from(client.send(put).await.status == 502);
    }
    assert_eq!((lost, read.load(Ordering::SeqCst)), (1, 1));
    gateway.balances().await;
}

#[tokio::test]
async fn what_came_over_http2_and_was_not_sent_goes_to_another_too() {
    let upstreams = [Upstream::start().await, Upstream::start().await];
    let gateway = TestGateway::start(UNWATCHED, &addresses(&upstreams));
    let client = Client::h2(gateway.address);
    assert_eq!(client.send(request(client, "POST", None)).await.status, 200);
    upstreams[0].vanish();
    for _ in 0..10 {
        assert_eq!(client.send(request(client, "POST", None)).await.status, 200);
    }
    gateway.balances().await;
}

/// Answers the first request of a connection, reads the second and resets.
async fn once_and_reset(mut tcp: TcpStream, read: Arc<AtomicUsize>) {
    for answer in [true, false] {
        let mut body = [0; 4];
        if !RawUpstream::read_head(&mut tcp).await || tcp.read_exact(&mut body).await.is_err() {
            return;
        }
        read.fetch_add(1, Ordering::SeqCst);
        if answer {
            let said = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
            tcp.write_all(said).await.unwrap();
        }
    }
    socket2::SockRef::from(&tcp).set_linger(Some(std::time::Duration::ZERO)).unwrap();
}

#[tokio::test]
async fn what_was_read_on_a_kept_connection_is_not_repeated_either() {
    for (method, lost) in [("POST", 10), ("PUT", 0)] {
        let read = Arc::new(AtomicUsize::new(0));
        let upstream = RawUpstream::start({
            let read = Arc::clone(&read);
            move |tcp| once_and_reset(tcp, Arc::clone(&read))
        })
        .await;
        let gateway = TestGateway::start("[listen]\nthreads = 1\n", &[upstream.address]);
        let client = Client::new(gateway.address);
        let mut statuses = Vec::new();
        for _ in 0..20 {
            statuses.push(client.send(request(client, method, None)).await.status.as_u16());
        }
        let failed = statuses.iter().filter(|status| **status == 502).count();
        assert_eq!(failed, lost, "{method}: {statuses:?}");
        // What was lost was read once; what may be repeated was read again for each that was lost.
        let expected = if method == "POST" { 20..=20 } else { 30..=40 };
        let read = read.load(Ordering::SeqCst);
        assert!(expected.contains(&read), "{method}: {read}");
        gateway.balances().await;
    }
}
