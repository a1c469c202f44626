//! Request targets that are none, or that a rule should not overlook.

use crate::measure::alone;
use crate::support::{Client, TestGateway, Upstream, eventually, raw};

#[tokio::test]
async fn a_target_without_a_form_is_400_and_reaches_nobody() {
    let _alone = alone().await;
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
    let _alone = alone().await;
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

#[tokio::test]
async fn no_way_to_write_a_path_passes_by_its_rule() {
    let _alone = alone().await;
    let upstream = Upstream::start().await;
    let rule = "[[route]]\npath_prefix = \"/admin\"\npriority = \"low\"\n";
    let gateway =
        TestGateway::start(&format!("{rule}[admission]\nlow_limit = 1\n"), &[upstream.address]);
    let client = Client::new(gateway.address);
    // The rule's priority has one slot, and it is taken: who is admitted has passed by the rule.
    upstream.gate.close();
    let first = tokio::spawn(async move { client.get("/admin").await });
    eventually("the slot is taken", || gateway.in_flight() == 1).await;
    for path in ["/admin", "//admin", "/%61dmin", "/x/../admin", "/x/%2e%2E/admin", "/./admin/x"] {
        assert_eq!(client.get(path).await.status, 503, "{path}");
    }
    upstream.gate.open();
    assert_eq!(first.await.unwrap().status, 200);
    gateway.balances().await;
    assert_eq!(client.get("/x/..//%61dmin?q").await.status, 200);
    assert_eq!(upstream.last().uri.to_string(), "/x/..//%61dmin?q", "sent on as it came");
}
