//! Request targets that are none, or that a rule should not overlook.

use crate::support::{Client, TestGateway, Upstream, raw};

#[tokio::test]
async fn a_target_without_a_form_is_400_and_reaches_nobody() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    for line in ["GET foo", "GET foo:80", "POST a.b", "OPTIONS foo", "GET x@y"] {
        let request = format!("{line} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let answer = raw(gateway.address, request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 400"), "{line} got {answer}");
    }
    assert!(upstream.seen().is_empty(), "{:?}", upstream.seen());
    gateway.balances().await;
}

#[tokio::test]
async fn every_form_of_a_target_is_still_served() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let forms = [
        ("GET /a?b", "/a?b"),
        ("GET http://x", "/"),
        ("GET http://x/a", "/a"),
        ("OPTIONS *", "*"),
        ("OPTIONS /a", "/a"),
    ];
    for (line, target) in forms {
        let request = format!("{line} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let answer = raw(gateway.address, request.as_bytes()).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{line} got {answer}");
        assert_eq!(upstream.last().uri.to_string(), target);
    }
    assert_eq!(Client::h2(gateway.address).get("/h2").await.status, 200);
    assert_eq!(upstream.last().uri.path(), "/h2");
}
