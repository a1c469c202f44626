//! Thresholds on servers that do not report what they need.

use super::streams::{server, stream};
use crate::support::{Client, TestGateway};
use crate::traffic::{post_json, until, until_known};
use serde_json::{Value, json};
use tidegate_testkit::mock::MetricsStyle;
use tokio::task::JoinSet;

const PRESET: &str = "[routing]\nload_source = \"scrape\"\nscrape_interval_ms = 50\n\
                      preset = \"latency\"\n";

fn missing(stats: &Value) -> &Value {
    &stats["upstreams"][0]["load"]["thresholds_without_data"]
}

#[tokio::test]
async fn a_preset_that_a_server_can_not_be_judged_by_is_shown() {
    for (style, expected) in [
        (MetricsStyle::Vllm, json!([])),
        (MetricsStyle::Sglang, json!([])),
        (MetricsStyle::Llamacpp, json!(["active_decode_blocks"])),
        (MetricsStyle::Tgi, json!(["active_decode_blocks"])),
        (MetricsStyle::None, json!(["active_decode_blocks"])),
    ] {
        let mock = server("a", |config| config.metrics = style);
        let gateway = TestGateway::start(PRESET, &[mock.address()]);
        if style != MetricsStyle::None {
            until_known(&gateway).await;
        }
        until(&gateway, "it is shown", |stats| *missing(stats) == expected).await;
        let clear = json!({"model": "tidegate-mock", "active_decode_blocks_threshold": null});
        until(&gateway, "the model is known", |stats| {
            stats["models"][0]["model"] == "tidegate-mock"
        })
        .await;
        let cleared = post_json(gateway.admin, "/busy_threshold", &clear).await;
        assert_eq!(cleared.status, 200, "{}", cleared.text());
        until(&gateway, "nothing is set any more", |stats| *missing(stats) == json!([])).await;
    }
}

/// 100 requests at once are more than its 8 slots, and the preset's share of the cache can't stop them.
#[tokio::test]
async fn the_found_limit_holds_where_a_preset_can_not() {
    let mock = server("a", |config| config.metrics = MetricsStyle::Llamacpp);
    let config = format!("{PRESET}limit = \"auto\"\n");
    let gateway = TestGateway::start(&config, &[mock.address()]);
    until_known(&gateway).await;
    let mut streams = JoinSet::new();
    for _ in 0..100 {
        streams.spawn(stream(gateway.address));
    }
    let mut deferred_max = 0;
    while !streams.is_empty() {
        let page = Client::new(mock.address()).get("/metrics").await;
        let deferred = page
            .text()
            .lines()
            .find_map(|line| line.strip_prefix("llamacpp:requests_deferred ")?.parse::<u64>().ok());
        deferred_max = deferred_max.max(deferred.expect("it tells what waits"));
        while streams.try_join_next().is_some() {}
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(deferred_max <= 4, "{deferred_max} waited at the server");
}
