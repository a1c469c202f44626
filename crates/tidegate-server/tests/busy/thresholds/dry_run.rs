//! A dry run refuses nothing, and counts what it would have refused by reason.

use crate::support::{Client, TestGateway, eventually};
use crate::traffic::{Flood, active, addresses, count, get, until_known};
use crate::upstream::{Upstream, page};
use serde_json::Value;

/// Counts of a run: all, would have been refused for this reason, and refused for any.
async fn tasks(gateway: &TestGateway, reason: &str) -> (u64, u64, u64) {
    let stats = gateway.stats().await;
    assert_eq!(stats["dry_run"], true);
    let tasks = &stats["tasks"];
    let sum = |counts: &Value| -> u64 {
        counts.as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum()
    };
    let would = &tasks["would_reject"];
    let of_reason = would[reason].as_u64().unwrap();
    assert_eq!(sum(would), of_reason, "for no other reason: {would}");
    (tasks["issued"].as_u64().unwrap(), of_reason, sum(&tasks["rejected"]))
}

/// Twenty at once where there are four places: all are served.
async fn nothing_is_refused(
    config: &str,
    upstreams: &[Upstream],
    reason: &str,
    would: u64,
) -> TestGateway {
    let config = format!("dry_run = true\n{config}");
    let gateway = TestGateway::start(&config, &addresses(upstreams));
    if config.contains("scrape") {
        until_known(&gateway).await;
    }
    let flood = Flood::of_gets(Client::new(gateway.address), 20);
    eventually("all of them are there", || active(upstreams) == 20).await;
    upstreams.iter().for_each(Upstream::open);
    assert_eq!(count(&flood.rest().await, 200), 20, "{reason}");
    gateway.balances().await;
    assert_eq!(tasks(&gateway, reason).await, (20, would, 0), "{reason}");
    let metrics = Client::new(gateway.admin).get("/metrics").await;
    let line = format!("tidegate_requests_would_reject_total{{reason=\"{reason}\"}} {would}\n");
    assert!(metrics.text().contains(&line), "{line}");
    assert!(metrics.text().contains("tidegate_dry_run 1\n"));
    gateway
}

#[tokio::test]
async fn busy_thresholds_only_count() {
    let scraped = "load_source = \"scrape\"\nscrape_interval_ms = 600000\n";
    for (config, page) in [
        ("active_requests_threshold = 4\n".to_owned(), page(&[])),
        ("active_prefill_tokens_threshold = 4\n".to_owned(), page(&[])),
        (format!("{scraped}active_decode_blocks_threshold = 0.5\n"), page(&[(0, 8, 0, 0)])),
    ] {
        let upstreams = [Upstream::closed().await.telling(&page)];
        nothing_is_refused(&format!("[routing]\n{config}"), &upstreams, "all_busy", 16).await;
    }
}

#[tokio::test]
async fn the_gateway_s_own_limits_only_count() {
    let upstreams = [Upstream::closed().await];
    let config =
        "[admission]\nglobal_limit = 64\nhigh_limit = 8\nnormal_limit = 4\nlow_limit = 4\n";
    nothing_is_refused(config, &upstreams, "priority_limit", 16).await;
    let upstreams = [Upstream::closed().await];
    let config = "[admission]\nglobal_limit = 4\nhigh_limit = 4\nnormal_limit = 4\nlow_limit = 4\n\
                  critical_reserve = 0\n";
    nothing_is_refused(config, &upstreams, "global_limit", 16).await;
}

/// In a dry run nothing waits, whatever the queue.
#[tokio::test]
async fn a_limit_only_counts() {
    for queue in ["", "[queue]\nsize = 0\n", "[queue]\nsize = 1\nwait_max_ms = 3600000\n"] {
        let upstreams = [Upstream::closed().await];
        let config = format!("[routing]\nlimit = 4\n{queue}");
        let gateway = nothing_is_refused(&config, &upstreams, "all_busy", 16).await;
        let totals = crate::waiting::queue(&gateway).totals;
        assert_eq!((totals.queued, totals.refused_full, totals.refused_wait), (0, 0, 0));
    }
}

#[tokio::test]
async fn a_deadline_that_has_passed_only_counts() {
    let upstreams = [Upstream::closed().await];
    let config = "dry_run = true\n[routing]\nlimit = 4\n";
    let gateway = TestGateway::start(config, &addresses(&upstreams));
    let client = Client::new(gateway.address);
    let flood = Flood::new(client, 20, || {
        let mut request = get(client, "/work");
        request.headers_mut().insert("tidegate-timeout-ms", 0.into());
        request
    });
    eventually("all of them are there", || active(&upstreams) == 20).await;
    upstreams[0].open();
    assert_eq!(count(&flood.rest().await, 200), 20);
    gateway.balances().await;
    assert_eq!(tasks(&gateway, "all_busy").await, (20, 16, 0));
}

#[tokio::test]
async fn a_share_that_is_used_up_only_counts() {
    let upstreams = Upstream::several(2).await;
    let config = "dry_run = true\n[admission]\nglobal_limit = 80\nhigh_limit = 40\n\
                  normal_limit = 40\nlow_limit = 10\n[routing]\nupstream_share = 0.1\n";
    let gateway = TestGateway::start(config, &addresses(&upstreams));
    let flood = Flood::of_gets(Client::new(gateway.address), 20);
    eventually("all of them are there", || active(&upstreams) == 20).await;
    upstreams.iter().for_each(Upstream::open);
    assert_eq!(count(&flood.rest().await, 200), 20);
    let (issued, would, rejected) = tasks(&gateway, "upstream_share").await;
    assert_eq!((issued, rejected), (20, 0));
    assert!(would >= 12, "each has four places: {would}");
}

#[tokio::test]
async fn upstreams_that_are_starting_only_count() {
    let upstreams = [Upstream::closed().await.telling(&page(&[(0, 0, 0, 0)]))];
    let config = "[routing]\nload_source = \"scrape\"\nscrape_interval_ms = 600000\n\
                  active_decode_blocks_threshold = 0.5\n";
    nothing_is_refused(config, &upstreams, "no_upstreams", 20).await;
}
