use crate::support::{Answer, Client, RawUpstream, TestGateway, Upstream};
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{HeaderMap, HeaderValue};
use http_body::Frame;
use http_body_util::{BodyExt, Channel, Full, StreamBody};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::Notify;

#[tokio::test]
async fn an_answer_arrives_chunk_by_chunk() {
    // The upstream sends the next event only when the client has seen the last one.
    let seen = Arc::new(Notify::new());
    let upstream = RawUpstream::start({
        let seen = Arc::clone(&seen);
        move |mut tcp| {
            let seen = Arc::clone(&seen);
            async move {
                if !RawUpstream::read_head(&mut tcp).await {
                    return;
                }
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                            transfer-encoding: chunked\r\n\r\n";
                tcp.write_all(head.as_bytes()).await.unwrap();
                for number in 0..5 {
                    let event = format!("data: {number}\n\n");
                    let chunk = format!("{:x}\r\n{event}\r\n", event.len());
                    tcp.write_all(chunk.as_bytes()).await.unwrap();
                    seen.notified().await;
                }
                tcp.write_all(b"0\r\n\r\n").await.unwrap();
            }
        }
    })
    .await;
    let gateway = TestGateway::start("", &[upstream.address]);
    for client in [Client::new(gateway.address), Client::h2(gateway.address)] {
        let request = client.request("GET", "/events").body(Full::<Bytes>::default()).unwrap();
        let mut body = client.begin(request).await.unwrap().into_body();
        for number in 0..5 {
            let frame = body.frame().await.unwrap().unwrap();
            assert_eq!(frame.into_data().unwrap(), format!("data: {number}\n\n"));
            seen.notify_one();
        }
        // HTTP/2 may end its stream with an empty frame.
        assert!(body.collect().await.unwrap().to_bytes().is_empty());
    }
    gateway.balances().await;
}

#[tokio::test]
async fn a_large_upload_is_never_held_whole() {
    const TOTAL: usize = 256 * 1024 * 1024;
    let taken = Arc::new(AtomicUsize::new(0));
    let go_on = Arc::new(Notify::new());
    let upstream = RawUpstream::start({
        let (taken, go_on) = (Arc::clone(&taken), Arc::clone(&go_on));
        move |mut tcp| {
            let (taken, go_on) = (Arc::clone(&taken), Arc::clone(&go_on));
            async move {
                if !RawUpstream::read_head(&mut tcp).await {
                    return;
                }
                // Takes nothing until the client can push no more.
                go_on.notified().await;
                let mut chunk = vec![0; 1 << 20];
                while taken.load(Ordering::Relaxed) < TOTAL {
                    let read = tcp.read(&mut chunk).await.unwrap();
                    taken.fetch_add(read, Ordering::Relaxed);
                }
                tcp.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\ndone").await.unwrap();
                let _ = tcp.read(&mut chunk).await;
            }
        }
    })
    .await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let pushed = Arc::new(AtomicUsize::new(0));
    let body = {
        let pushed = Arc::clone(&pushed);
        let piece = Bytes::from(vec![7u8; 1 << 20]);
        let frames = futures_util::stream::iter(0..TOTAL >> 20).map(move |_| {
            pushed.fetch_add(1 << 20, Ordering::Relaxed);
            Ok::<_, Infallible>(Frame::data(piece.clone()))
        });
        StreamBody::new(frames)
    };
    let client = Client::new(gateway.address);
    let request =
        client.request("POST", "/upload").header("content-length", TOTAL).body(body).unwrap();
    let before = resident_bytes();
    let answer =
        tokio::spawn(async move { Answer::read(client.begin(request).await.unwrap()).await });
    // Until the upstream reads, what the client could push is what buffers on the way hold.
    stands_still(&pushed).await;
    assert!(
        pushed.load(Ordering::Relaxed) < TOTAL / 4,
        "{} pushed",
        pushed.load(Ordering::Relaxed)
    );
    go_on.notify_one();
    assert_eq!(answer.await.unwrap().text(), "done");
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < TOTAL as u64 / 4, "{grown} bytes more after an upload of {TOTAL}");
    gateway.balances().await;
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[tokio::test]
async fn trailers_travel_both_ways_over_http1() {
    let upstream = RawUpstream::start(|mut tcp| async move {
        if !RawUpstream::read_head(&mut tcp).await {
            return;
        }
        let mut body = Vec::new();
        while !body.ends_with(b"\r\n\r\n") {
            body.push(tcp.read_u8().await.unwrap());
        }
        let body = String::from_utf8(body).unwrap();
        assert!(body.contains("x-sum: of the request"), "{body}");
        let answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n\
                      2\r\nok\r\n0\r\nx-sum: of the answer\r\n\r\n";
        tcp.write_all(answer.as_bytes()).await.unwrap();
    })
    .await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let client = Client::new(gateway.address);
    let (mut sender, body) = Channel::<Bytes, Infallible>::new(4);
    let request = client
        .request("POST", "/")
        .header("trailer", "x-sum")
        .header("te", "trailers")
        .body(body)
        .unwrap();
    tokio::spawn(async move {
        sender.send_data(Bytes::from("body")).await.unwrap();
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", HeaderValue::from_static("of the request"));
        sender.send_trailers(trailers).await.unwrap();
    });
    let answer = Answer::read(client.begin(request).await.unwrap()).await;
    assert_eq!(answer.text(), "ok");
    assert_eq!(answer.trailers.unwrap()["x-sum"], "of the answer");
    gateway.balances().await;
    let finished = gateway.stats().await["admission"]["finished"][2].clone();
    assert_eq!(finished["success"], 1, "an answer that ends in trailers has ended: {finished}");
}

#[tokio::test]
async fn a_chunked_request_stays_a_stream() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let client = Client::new(gateway.address);
    let (mut sender, body) = Channel::<Bytes, Infallible>::new(4);
    let request = client.request("POST", "/").body(body).unwrap();
    tokio::spawn(async move {
        for piece in ["one ", "two ", "three"] {
            sender.send_data(Bytes::from(piece)).await.unwrap();
        }
    });
    assert_eq!(Answer::read(client.begin(request).await.unwrap()).await.status, 200);
    let seen = upstream.last();
    assert_eq!(seen.body, "one two three");
    assert!(!seen.headers.contains_key("content-length"));
}

#[tokio::test]
async fn a_large_answer_is_never_held_whole() {
    const TOTAL: usize = 256 * 1024 * 1024;
    let sent = Arc::new(AtomicUsize::new(0));
    let upstream = RawUpstream::start({
        let sent = Arc::clone(&sent);
        move |mut tcp| {
            let sent = Arc::clone(&sent);
            async move {
                if !RawUpstream::read_head(&mut tcp).await {
                    return;
                }
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {TOTAL}\r\n\r\n");
                tcp.write_all(head.as_bytes()).await.unwrap();
                let piece = vec![7; 1 << 20];
                while sent.load(Ordering::Relaxed) < TOTAL && tcp.write_all(&piece).await.is_ok() {
                    sent.fetch_add(piece.len(), Ordering::Relaxed);
                }
            }
        }
    })
    .await;
    let gateway = TestGateway::start("", &[upstream.address]);
    for client in [Client::new(gateway.address), Client::h2(gateway.address)] {
        sent.store(0, Ordering::Relaxed);
        let request = client.request("GET", "/").body(Full::<Bytes>::default()).unwrap();
        let mut body = client.begin(request).await.unwrap().into_body();
        // Until the client reads, what the upstream could push is what buffers on the way hold.
        stands_still(&sent).await;
        assert!(sent.load(Ordering::Relaxed) < TOTAL / 4, "{} sent", sent.load(Ordering::Relaxed));
        let mut read = 0;
        while let Some(frame) = body.frame().await {
            read += frame.unwrap().into_data().map_or(0, |data| data.len());
        }
        assert_eq!(read, TOTAL);
    }
    gateway.balances().await;
}

/// Waits until a counter has moved and moves no more.
async fn stands_still(counter: &AtomicUsize) {
    let mut last = usize::MAX;
    loop {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let now = counter.load(Ordering::Relaxed);
        if std::mem::replace(&mut last, now) == now && now > 0 {
            return;
        }
    }
}

#[tokio::test]
async fn a_slow_reader_gets_its_whole_answer_however_long_it_takes() {
    const TOTAL: usize = 24 * 1024 * 1024;
    let upstream = RawUpstream::start(|mut tcp| async move {
        RawUpstream::read_head(&mut tcp).await;
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {TOTAL}\r\n\r\n");
        let _ = tcp.write_all(head.as_bytes()).await;
        let _ = tcp.write_all(&vec![7; TOTAL]).await;
        let _ = tcp.read_u8().await;
    })
    .await;
    // Quiet connections are closed after 100 ms; this one is slow for seconds, but never quiet.
    let gateway = TestGateway::start("[listen]\nheader_timeout_ms = 100\n", &[upstream.address]);
    let mut tcp = tokio::net::TcpStream::connect(gateway.address).await.unwrap();
    tcp.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
    let (mut read, mut chunk) = (0, vec![0; 1 << 20]);
    loop {
        match tcp.read(&mut chunk).await.unwrap() {
            0 => break,
            bytes => read += bytes,
        }
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    assert!(read > TOTAL, "{read} of {TOTAL} and a head");
    gateway.balances().await;
}
