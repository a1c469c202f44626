//! What a proxy must not let through.

use crate::support::{Client, TestGateway, Upstream, raw};

#[tokio::test]
async fn a_request_with_two_framings_reaches_the_upstream_with_one_or_not_at_all() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let smuggled =
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 6\r\ntransfer-encoding: chunked\r\n\
                     connection: close\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nhost: x\r\n\r\n";
    raw(gateway.address, smuggled).await;
    for seen in upstream.seen() {
        assert_ne!(seen.uri.path(), "/smuggled");
        assert!(
            seen.headers.get("content-length").is_none()
                || seen.headers.get("transfer-encoding").is_none()
        );
    }
}

#[tokio::test]
async fn malformed_requests_are_400_and_reach_nobody() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let requests: [&[u8]; 7] = [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\nhost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: x\r\nbad header\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab",
        b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\nconnection: close\r\n\r\n",
    ];
    for request in requests {
        let answer = raw(gateway.address, request).await;
        let refused = answer.is_empty() || answer.starts_with("HTTP/1.1 400");
        assert!(refused, "{:?} got {answer}", String::from_utf8_lossy(request));
    }
    assert!(upstream.seen().is_empty(), "{:?}", upstream.seen());
    assert_eq!(Client::new(gateway.address).get("/").await.status, 200);
    gateway.balances().await;
}

#[tokio::test]
async fn a_head_without_end_is_cut_off() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let mut head = b"GET / HTTP/1.1\r\nhost: x\r\n".to_vec();
    for number in 0..20_000 {
        head.extend_from_slice(format!("x-{number}: {}\r\n", "y".repeat(50)).as_bytes());
    }
    let mut tcp = tokio::net::TcpStream::connect(gateway.address).await.unwrap();
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let _ = tcp.write_all(&head).await;
    let mut answer = Vec::new();
    let _ = tcp.read_to_end(&mut answer).await;
    let answer = String::from_utf8_lossy(&answer);
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    assert!(upstream.seen().is_empty());
}

#[tokio::test]
async fn connect_is_not_served() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let answer =
        raw(gateway.address, b"CONNECT a:1 HTTP/1.1\r\nhost: a:1\r\nconnection: close\r\n\r\n")
            .await;
    assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
    gateway.balances().await;
}

#[tokio::test]
async fn garbage_on_the_admin_port_harms_nobody() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    for _ in 0..20 {
        raw(gateway.admin, b"\xff\xfe\xfd garbage \r\n\r\n").await;
    }
    assert_eq!(Client::new(gateway.admin).get("/health/live").await.status, 200);
}

#[tokio::test]
async fn hosts_and_targets_that_are_none_reach_nobody() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let requests: [(&[u8], &str); 6] = [
        (b"GET / HTTP/1.1\r\nhost: a b\r\nconnection: close\r\n\r\n", "bad_host"),
        (b"GET / HTTP/1.1\r\nhost: a\"b\r\nconnection: close\r\n\r\n", "bad_host"),
        (b"GET / HTTP/1.1\r\nhost: u:p@other\r\nconnection: close\r\n\r\n", "bad_host"),
        (b"GET http://u:p@o/ HTTP/1.1\r\nhost: o\r\nconnection: close\r\n\r\n", "bad_target"),
        (b"GET ftp://o/ HTTP/1.1\r\nhost: o\r\nconnection: close\r\n\r\n", "bad_target"),
        (b"GET * HTTP/1.1\r\nhost: o\r\nconnection: close\r\n\r\n", "bad_target"),
    ];
    for (request, reason) in requests {
        let answer = raw(gateway.address, request).await;
        let expected = answer.starts_with("HTTP/1.1 400") && answer.contains(reason);
        assert!(expected, "{:?} got {answer}", String::from_utf8_lossy(request));
        let explained = answer.contains("expected a path that starts with /");
        assert_eq!(explained, reason == "bad_target", "{answer}");
    }
    assert!(upstream.seen().is_empty(), "{:?}", upstream.seen());
    gateway.balances().await;
}

#[tokio::test]
async fn a_transfer_coding_that_would_be_lost_is_not_served() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let request =
        b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n";
    let answer = raw(gateway.address, request).await;
    assert!(answer.starts_with("HTTP/1.1 501") && answer.contains("transfer_coding"), "{answer}");
    assert!(upstream.seen().is_empty());
}
