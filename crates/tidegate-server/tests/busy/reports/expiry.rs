//! Reports that come late, never, or are not true.

use crate::support::{Client, eventually, undisturbed};
use crate::traffic::{
    CHAT, Flood, active, addresses, chat, fast_mock, fault, post_json, slow_mock, status, until,
    until_known, until_status, without_queue,
};
use crate::upstream::{Upstream, page};
use serde_json::json;
use tidegate_testkit::mock::MetricsStyle;

const SCRAPED: &str = "[routing]\nload_source = \"scrape\"\nscrape_interval_ms = 10\n";

#[tokio::test]
async fn a_late_report_does_not_free_places_that_were_taken_after_it_was_made() {
    undisturbed("a page comes late, and not too late", async || a_late_report().await).await;
}

/// Whether the page that was held was the one that was read: one that takes too long is asked for again.
async fn a_late_report() -> Option<()> {
    let upstream = Upstream::closed().await.telling(&page(&[(0, 8, 0, 0)]));
    upstream.hold_pages();
    upstream.allow_pages(1);
    let config = format!("{SCRAPED}report_ttl_ms = 60000\nactive_decode_blocks_threshold = 0.5\n");
    let gateway = without_queue(&config, &[upstream.address]);
    until_known(&gateway).await;
    eventually("the second page is asked for", || upstream.pages_asked() >= 2).await;
    let asked = upstream.pages_asked();
    let held = Flood::of_gets(Client::new(gateway.address), 4);
    eventually("half of the blocks are taken", || upstream.active() == 4).await;
    assert_eq!(status(&gateway).await, 503);
    // That page says that all is free, which was true when it was asked for.
    upstream.allow_pages(1);
    eventually("it was read, and the next is asked for", || upstream.pages_asked() > asked).await;
    let late = status(&gateway).await;
    if upstream.pages_asked() > asked + 1 {
        return None;
    }
    assert_eq!(late, 503);
    // It says so again, and now with all that was sent: that is believed.
    upstream.allow_pages(1_000_000);
    upstream.open();
    held.rest().await;
    until_status(&gateway, 200).await;
    Some(())
}

#[tokio::test]
async fn an_upstream_that_falls_silent_while_busy_is_free_again_after_the_ttl() {
    let upstream = Upstream::start().await.telling(&page(&[(990, 1000, 0, 100)]));
    let config = format!(
        "{SCRAPED}report_ttl_ms = 300\nactive_requests_threshold = 8\n\
         active_decode_blocks_threshold = 0.85\n"
    );
    let gateway = without_queue(&config, &[upstream.address]);
    // It says that it is busy.
    until_status(&gateway, 503).await;
    upstream.hold_pages();
    until_status(&gateway, 200).await;
    assert_eq!(gateway.stats().await["upstreams"][0]["load"]["load_known"], false);
    // It is heard again: busy again, and then free without delay.
    upstream.allow_pages(1_000_000);
    until_status(&gateway, 503).await;
    upstream.tell(&page(&[(10, 1000, 0, 0)]));
    until_status(&gateway, 200).await;
}

#[tokio::test]
async fn silence_counts_as_busy_where_that_is_the_policy() {
    let upstream = Upstream::start().await.telling(&page(&[(0, 1000, 0, 0)]));
    upstream.hold_pages();
    let config = format!(
        "{SCRAPED}report_ttl_ms = 300\nactive_requests_threshold = 8\non_silence = \"busy\"\n"
    );
    let gateway = without_queue(&config, &[upstream.address]);
    let refused = Client::new(gateway.address).get("/").await;
    assert_eq!((refused.status.as_u16(), &refused.json()["reason"]), (503, &json!("all_busy")));
    assert_eq!(refused.json()["threshold"], json!(null), "no threshold is exceeded");
    upstream.allow_pages(1_000_000);
    until_status(&gateway, 200).await;
    upstream.hold_pages();
    until_status(&gateway, 503).await;
    upstream.allow_pages(1_000_000);
    until_status(&gateway, 200).await;
}

#[tokio::test]
async fn an_upstream_that_never_reports_still_gets_no_more_than_its_places() {
    for silence in ["its metrics hang", "it has none"] {
        let upstream = Upstream::closed().await;
        if silence == "its metrics hang" {
            upstream.hold_pages();
        }
        let config = format!("{SCRAPED}active_requests_threshold = 4\n");
        let gateway = without_queue(&config, &[upstream.address]);
        let mut flood = Flood::of_gets(Client::new(gateway.address), 20);
        assert_eq!(flood.answers(16).await.len(), 16, "{silence}");
        eventually("the others are there", || upstream.active() == 4).await;
        upstream.open();
        assert!(flood.rest().await.iter().all(|answer| answer.status == 200), "{silence}");
        assert_eq!(upstream.peak(), 4, "{silence}");
        assert_eq!(status(&gateway).await, 200, "{silence}");
    }
}

#[tokio::test]
async fn reports_that_stand_still_at_idle_do_not_let_more_in() {
    let mock = slow_mock(|config| config.metrics = MetricsStyle::Vllm);
    fault(&mock, &json!({"reports": "stale"})).await;
    let config = format!("{SCRAPED}active_requests_threshold = 4\n");
    let gateway = without_queue(&config, &[mock.address()]);
    until_known(&gateway).await;
    let held: Vec<_> = (0..4)
        .map(|_| {
            let (address, body) = (gateway.address, chat("tidegate-mock"));
            tokio::spawn(async move { post_json(address, CHAT, &body).await })
        })
        .collect();
    let all = |stats: &serde_json::Value| stats["upstreams"][0]["in_flight"] == 4;
    until(&gateway, "all places are taken", all).await;
    let reported = |stats: &serde_json::Value| {
        let rank = &stats["upstreams"][0]["load"]["ranks"][0];
        rank["report"]["running"] == 0 && rank["requests"] == 4
    };
    until(&gateway, "the report has none of them", reported).await;
    for _ in 0..20 {
        let refused = post_json(gateway.address, CHAT, &chat("tidegate-mock")).await;
        assert_eq!((refused.status.as_u16(), refused.json()["reason"].as_str()), (503, BUSY));
    }
    held.iter().for_each(tokio::task::JoinHandle::abort);
    gateway.balances().await;
}

const BUSY: Option<&str> = Some("all_busy");

#[tokio::test]
async fn reports_that_stand_still_at_busy_are_left_behind_when_they_move_again() {
    let upstream = Upstream::start().await.telling(&page(&[(0, 1000, 0, 100)]));
    let config = format!("{SCRAPED}active_requests_threshold = 4\n");
    let gateway = without_queue(&config, &[upstream.address]);
    until_status(&gateway, 503).await;
    upstream.tell(&page(&[(0, 1000, 0, 0)]));
    until_status(&gateway, 200).await;
}

#[tokio::test]
async fn zeros_of_a_server_that_is_starting_are_not_idleness() {
    for style in [MetricsStyle::Vllm, MetricsStyle::Tidegate] {
        let mock = fast_mock(|config| config.metrics = style);
        fault(&mock, &json!({"reports": "not_ready"})).await;
        let config = format!("{SCRAPED}active_decode_blocks_threshold = 0.85\n");
        let gateway = without_queue(&config, &[mock.address()]);
        until_known(&gateway).await;
        let refused = post_json(gateway.address, CHAT, &chat("tidegate-mock")).await;
        let body = refused.json();
        assert_eq!(refused.status, 503, "{style:?}");
        assert_eq!(body["type"], "no_upstreams_available", "{style:?}");
        assert_eq!(body["reason"], "upstreams_starting", "{style:?}");
        assert_eq!((&body["busy_upstreams"], &body["total_upstreams"]), (&json!(0), &json!(1)));
        assert!(refused.header("retry-after").parse::<u64>().unwrap() >= 1);
        fault(&mock, &json!({"reports": "live"})).await;
        let ready = |stats: &serde_json::Value| {
            stats["upstreams"][0]["load"]["ranks"][0]["report"]["kv_total_blocks"] != 0
        };
        until(&gateway, "it is ready", ready).await;
        let served = post_json(gateway.address, CHAT, &chat("tidegate-mock")).await;
        assert_eq!(served.status, 200, "{style:?}");
    }
}

#[tokio::test]
async fn who_is_starting_is_passed_over_for_who_is_ready() {
    let starting = Upstream::start().await.telling(&page(&[(0, 0, 0, 0)]));
    let ready = Upstream::start().await.telling(&page(&[(100, 1000, 0, 1)]));
    let config = format!("{SCRAPED}active_decode_blocks_threshold = 0.85\n");
    let gateway = without_queue(&config, &[starting.address, ready.address]);
    until_known(&gateway).await;
    for _ in 0..20 {
        assert_eq!(status(&gateway).await, 200);
    }
    assert_eq!((starting.came().len(), ready.came().len()), (0, 20));
    ready.tell(&page(&[(990, 1000, 0, 1)]));
    let busy = |stats: &serde_json::Value| {
        stats["upstreams"][1]["load"]["ranks"][0]["report"]["active_decode_blocks"] == 990
    };
    until(&gateway, "the other is busy", busy).await;
    let body = Client::new(gateway.address).get("/").await.json();
    assert_eq!(body["reason"], "all_busy");
    assert_eq!((&body["busy_upstreams"], &body["total_upstreams"]), (&json!(1), &json!(2)));
    assert_eq!(active(&[starting, ready]), 0);
}

#[tokio::test]
async fn a_rank_with_room_keeps_its_upstream_free() {
    let upstreams = [Upstream::start().await.telling(&page(&[(990, 1000, 0, 0), (0, 1000, 0, 0)]))];
    let config = format!("{SCRAPED}active_decode_blocks_threshold = 0.85\n");
    let gateway = without_queue(&config, &addresses(&upstreams));
    until_known(&gateway).await;
    assert_eq!(status(&gateway).await, 200);
    upstreams[0].tell(&page(&[(990, 1000, 0, 0), (990, 1000, 0, 0)]));
    until_status(&gateway, 503).await;
    upstreams[0].tell(&page(&[(0, 1000, 0, 0), (990, 1000, 0, 0)]));
    until_status(&gateway, 200).await;
}
