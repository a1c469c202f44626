//! All priorities have the same thresholds. What is beyond them waits, and is served by priority.

use crate::support::{Client, TestGateway, eventually, undisturbed};
use crate::traffic::{Flood, count, until, until_known};
use crate::upstream::{Upstream, page};
use crate::waiting::{assert_served, queue, send, waiting};
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use serde_json::Value;

/// Longer than any test takes.
const PATIENT: &str = "[queue]\nwait_max_ms = 3600000\n";

fn request(client: Client, priority: &str) -> Request<Full<Bytes>> {
    let request = client.request("GET", "/").header("tidegate-priority", priority);
    request.body(Full::default()).unwrap()
}

#[tokio::test]
async fn at_every_threshold_high_is_served_before_normal_and_low() {
    // Each has room for one request: one of one, one token, half of two blocks.
    for threshold in [
        "active_requests_threshold = 1\n",
        "active_prefill_tokens_threshold = 1\n",
        "load_source = \"scrape\"\nscrape_interval_ms = 600000\nreport_ttl_ms = 3600000\n\
         active_decode_blocks_threshold = 0.5\n",
    ] {
        let upstream = Upstream::closed().await.telling(&page(&[(0, 2, 0, 0)]));
        let config = format!("{PATIENT}[routing]\n{threshold}");
        let gateway = TestGateway::start(&config, &[upstream.address]);
        if threshold.contains("scrape") {
            until_known(&gateway).await;
        }
        let mut sent = Vec::new();
        for (name, priority) in [
            ("/first", "low"),
            ("/low-1", "low"),
            ("/normal-1", "normal"),
            ("/high-1", "high"),
            ("/low-2", "low"),
            ("/normal-2", "normal"),
            ("/high-2", "high"),
        ] {
            sent.push(send(&gateway, name, priority).await);
        }
        assert_eq!(waiting(&gateway), 6, "{threshold}");
        upstream.open();
        assert_served(sent).await;
        let expected =
            ["/first", "/high-1", "/high-2", "/normal-1", "/normal-2", "/low-1", "/low-2"];
        assert_eq!(upstream.paths(), expected, "{threshold}");
        gateway.balances().await;
    }
}

#[tokio::test]
async fn each_priority_can_use_all_slots() {
    for priority in ["high", "normal", "low"] {
        let upstream = Upstream::closed().await;
        let config = format!("{PATIENT}[routing]\nactive_requests_threshold = 10\n");
        let gateway = TestGateway::start(&config, &[upstream.address]);
        let client = Client::new(gateway.address);
        let first = Flood::new(client, 10, || request(client, priority));
        eventually("all slots are taken", || upstream.active() == 10).await;
        let flood = Flood::new(client, 4, || request(client, priority));
        eventually("the others wait", || waiting(&gateway) == 4).await;
        upstream.open();
        assert_eq!(count(&first.rest().await, 200), 10, "{priority}");
        assert_eq!(count(&flood.rest().await, 200), 4, "{priority}");
        assert_eq!(upstream.peak(), 10, "{priority}");
        gateway.balances().await;
    }
}

#[tokio::test]
async fn slots_that_become_free_one_by_one_go_to_high_first() {
    let upstream = Upstream::closed().await;
    let config = format!("{PATIENT}[routing]\nactive_requests_threshold = 3\n");
    let gateway = TestGateway::start(&config, &[upstream.address]);
    let mut sent = Vec::new();
    for _ in 0..3 {
        sent.push(send(&gateway, "/first", "low").await);
    }
    eventually("all slots are taken", || upstream.active() == 3).await;
    for (name, priority) in [("/low", "low"), ("/normal", "normal"), ("/high", "high")] {
        sent.push(send(&gateway, name, priority).await);
    }
    for (came, name) in [(4, "/high"), (5, "/normal"), (6, "/low")] {
        upstream.let_one_through();
        eventually("the next is there", || upstream.came().len() == came).await;
        assert_eq!(upstream.last().path, name);
    }
    upstream.open();
    assert_served(sent).await;
    assert_eq!(upstream.peak(), 3);
    gateway.balances().await;
}

#[tokio::test]
async fn a_report_of_room_serves_the_requests_that_wait() {
    for (busy, name) in [
        (page(&[(900, 1000, 0, 0)]), "active_decode_blocks"),
        (page(&[(0, 1000, 900, 0)]), "active_prefill_tokens"),
        (page(&[(0, 1000, 0, 9)]), "active_requests"),
    ] {
        let upstream = Upstream::start().await.telling(&busy);
        let config = format!(
            "{PATIENT}[routing]\nload_source = \"scrape\"\nscrape_interval_ms = 10\n\
             active_decode_blocks_threshold = 0.85\nactive_prefill_tokens_threshold = 850\n\
             active_requests_threshold = 8\n"
        );
        let gateway = TestGateway::start(&config, &[upstream.address]);
        until_known(&gateway).await;
        let mut sent = Vec::new();
        for priority in ["low", "normal", "high"] {
            sent.push(send(&gateway, "/", priority).await);
        }
        let one_each = |stats: &Value| {
            let queue = &stats["models"][0]["queue"];
            ["high", "normal", "low"].iter().all(|priority| queue[priority] == 1)
        };
        until(&gateway, name, one_each).await;
        assert!(upstream.came().is_empty(), "{name}");
        upstream.tell(&page(&[(100, 1000, 0, 1)]));
        assert_served(sent).await;
        gateway.balances().await;
    }
}

#[tokio::test]
async fn a_report_that_expires_serves_the_requests_that_wait() {
    undisturbed("a request waits before the report expires", async || expires().await).await;
}

/// Returns `None` if the report expired before the request was there.
async fn expires() -> Option<()> {
    let upstream = Upstream::start().await.telling(&page(&[(0, 1000, 0, 9)]));
    let config = format!(
        "{PATIENT}[routing]\nload_source = \"scrape\"\nscrape_interval_ms = 10\n\
         report_ttl_ms = 300\nactive_requests_threshold = 8\n"
    );
    let gateway = TestGateway::start(&config, &[upstream.address]);
    until_known(&gateway).await;
    let sent = send(&gateway, "/", "normal").await;
    upstream.hold_pages();
    assert_served([sent]).await;
    gateway.balances().await;
    (queue(&gateway).totals.queued == 1).then_some(())
}

#[tokio::test]
async fn no_normal_request_is_refused_for_low_ones() {
    let upstream = Upstream::start().await;
    let config = format!("{PATIENT}[routing]\nactive_requests_threshold = 20\n");
    let gateway = TestGateway::start(&config, &[upstream.address]);
    let client = Client::new(gateway.address);
    let low = Flood::new(client, 100, || request(client, "low"));
    let normal = Flood::new(client, 10, || request(client, "normal"));
    assert_eq!(count(&normal.rest().await, 200), 10);
    let low = low.rest().await;
    assert_eq!(count(&low, 200) + count(&low, 503), 100);
    assert!(upstream.peak() <= 20);
    gateway.balances().await;
}
