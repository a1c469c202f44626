//! Responses of HTTP/1.1 upstreams, byte by byte: their framing, and the connections that they leave.

use crate::support::{Client, RawUpstream, TestGateway, eventually};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Heads of which two readers could see two ends, or none.
const MALFORMED: [&str; 12] = [
    "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\ncontent-length: 5, 6\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\ncontent-length: +5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551621\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\ncontent-length : 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\nx: y\r\n content-length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked, gzip\r\n\r\n0\r\n\r\n",
    "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nx: a\0b\r\n\r\n",
    "HTTP/2 200 OK\r\n\r\n",
    "HTTP/1.1 2 OK\r\n\r\n",
    "HTTP/1.1 200 OK\r\ncontent-len",
];

/// Bodies that end elsewhere than they should.
const BROKEN: [&str; 6] = [
    "5\r\nhelloX\r\n0\r\n\r\n",
    "5\nhello\n0\n\n",
    "0x5\r\nhello\r\n0\r\n\r\n",
    "10000000000000005\r\nhello\r\n0\r\n\r\n",
    "5\r\nhello\r\n",
    "5\r\nhello\r\n0\r\nno field\r\n\r\n",
];

/// Answers every request with these bytes, and keeps the connection. Counts the connections that were used: health
/// probes send nothing.
async fn answering(answer: String) -> (RawUpstream, Arc<AtomicUsize>) {
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    let upstream = RawUpstream::start(move |mut tcp| {
        let (answer, counted) = (answer.clone(), Arc::clone(&counted));
        async move {
            let mut used = 0;
            while RawUpstream::read_head(&mut tcp).await {
                used += 1;
                counted.fetch_add(usize::from(used == 1), Ordering::Relaxed);
                if tcp.write_all(answer.as_bytes()).await.is_err() {
                    return;
                }
            }
        }
    })
    .await;
    (upstream, connections)
}

#[tokio::test]
async fn a_malformed_head_is_a_bad_gateway() {
    for head in MALFORMED {
        let upstream = RawUpstream::saying(Box::leak(Box::new([head]))).await;
        let gateway = TestGateway::start("", &[upstream.address]);
        let answer = Client::new(gateway.address).get("/").await;
        assert_eq!(answer.status, 502, "{head:?}");
        gateway.balances().await;
    }
}

#[tokio::test]
async fn a_malformed_body_breaks_off_and_its_connection_is_not_used_again() {
    for body in BROKEN {
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        let upstream = RawUpstream::saying(Box::leak(Box::new([head, body]))).await;
        let gateway = TestGateway::start("", &[upstream.address]);
        let client = Client::new(gateway.address);
        let request = client.request("GET", "/").body(Full::<Bytes>::default()).unwrap();
        let response = client.begin(request).await.unwrap();
        assert!(response.into_body().collect().await.is_err(), "{body:?}");
        gateway.balances().await;
    }
}

#[tokio::test]
async fn what_follows_a_response_is_nobody_s_response() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    let smuggled = "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil";
    let (upstream, connections) = answering(format!("{answer}{smuggled}")).await;
    let gateway = TestGateway::start("[listen]\nthreads = 1\n", &[upstream.address]);
    for _ in 0..5 {
        assert_eq!(Client::new(gateway.address).get("/").await.text(), "ok");
    }
    assert_eq!(connections.load(Ordering::Relaxed), 5, "each connection was used once");
}

#[tokio::test]
async fn connections_stay_as_the_head_says() {
    for (fields, stay) in [
        ("content-length: 2", true),
        ("content-length: 2\r\nconnection: keep-alive", true),
        ("content-length: 2\r\nconnection: close", false),
        ("content-length: 2\r\nconnection: x, Close", false),
    ] {
        let answer = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\nok");
        let (upstream, connections) = answering(answer).await;
        let gateway = TestGateway::start("[listen]\nthreads = 1\n", &[upstream.address]);
        for _ in 0..3 {
            let answer = Client::new(gateway.address).get("/").await;
            assert_eq!(answer.text(), "ok", "{fields}");
            assert!(!answer.headers.contains_key("connection"), "{fields}: {answer:?}");
        }
        assert_eq!(connections.load(Ordering::Relaxed), if stay { 1 } else { 3 }, "{fields}");
    }
}

#[tokio::test]
async fn a_response_that_comes_byte_by_byte_is_the_same() {
    const BODIES: [&str; 3] = [
        "content-length: 5\r\n\r\nhello",
        "transfer-encoding: chunked\r\n\r\n2;a=b\r\nhe\r\n3\r\nllo\r\n0\r\nx-sum: 1\r\n\r\n",
        "connection: close\r\n\r\nhello",
    ];
    for body in BODIES {
        let upstream = RawUpstream::start(move |mut tcp| async move {
            RawUpstream::read_head(&mut tcp).await;
            tcp.set_nodelay(true).unwrap();
            for byte in format!("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n{body}").bytes()
            {
                tcp.write_u8(byte).await.unwrap();
                tokio::task::yield_now().await;
            }
        })
        .await;
        let gateway = TestGateway::start("", &[upstream.address]);
        assert_eq!(Client::new(gateway.address).get("/").await.text(), "hello", "{body:?}");
    }
}

#[tokio::test]
async fn an_upload_goes_on_while_and_after_its_response_comes() {
    const HALF: usize = 300_000;
    let received = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&received);
    let upstream = RawUpstream::start(move |mut tcp| {
        let counted = Arc::clone(&counted);
        async move {
            RawUpstream::read_head(&mut tcp).await;
            tcp.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nearly").await.unwrap();
            let mut chunk = [0; 4096];
            while let Ok(bytes) = tcp.read(&mut chunk).await
                && bytes > 0
            {
                counted.fetch_add(bytes, Ordering::Relaxed);
            }
        }
    })
    .await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let mut tcp = TcpStream::connect(gateway.address).await.unwrap();
    let head = format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", 2 * HALF);
    tcp.write_all(head.as_bytes()).await.unwrap();
    tcp.write_all(&vec![b'a'; HALF]).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"early") {
        answer.push(tcp.read_u8().await.unwrap());
    }
    eventually("the first half", || received.load(Ordering::Relaxed) == HALF).await;
    tcp.write_all(&vec![b'b'; HALF]).await.unwrap();
    eventually("the second half", || received.load(Ordering::Relaxed) == 2 * HALF).await;
    gateway.balances().await;
}

#[tokio::test]
async fn an_upstream_that_answers_and_takes_no_more_is_heard() {
    let upstream = RawUpstream::start(|mut tcp| async move {
        RawUpstream::read_head(&mut tcp).await;
        let answer = b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n";
        // Closed with unread bytes, which resets the connection.
        let _ = tcp.write_all(answer).await;
    })
    .await;
    let gateway = TestGateway::start("", &[upstream.address]);
    for _ in 0..10 {
        let tcp = TcpStream::connect(gateway.address).await.unwrap();
        let (mut reader, mut writer) = tcp.into_split();
        let body = vec![b'a'; 4_000_000];
        let head = format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
        let writing = tokio::spawn(async move {
            let _ = writer.write_all(head.as_bytes()).await;
            let _ = writer.write_all(&body).await;
            writer
        });
        let mut status = [0; 12];
        reader.read_exact(&mut status).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&status), "HTTP/1.1 413");
        writing.abort();
    }
    gateway.balances().await;
}

#[tokio::test]
async fn bytes_of_the_other_protocol_that_come_with_the_switch_arrive() {
    let upstream = RawUpstream::start(|mut tcp| async move {
        RawUpstream::read_head(&mut tcp).await;
        let switch =
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nfirst";
        tcp.write_all(switch.as_bytes()).await.unwrap();
        let mut word = [0; 4];
        tcp.read_exact(&mut word).await.unwrap();
        tcp.write_all(&word).await.unwrap();
    })
    .await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let mut tcp = TcpStream::connect(gateway.address).await.unwrap();
    tcp.write_all(b"GET / HTTP/1.1\r\nhost: x\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n")
        .await
        .unwrap();
    assert!(RawUpstream::read_head(&mut tcp).await);
    tcp.write_all(b"echo").await.unwrap();
    let mut rest = Vec::new();
    let mut buffer = [0; 64];
    while rest.len() < 9 {
        let bytes = tcp.read(&mut buffer).await.unwrap();
        assert!(bytes > 0, "{rest:?}");
        rest.extend_from_slice(&buffer[..bytes]);
    }
    assert_eq!(rest, b"firstecho");
}
