//! Load as servers tell it: on their metrics pages, and in the headers of their answers.

use crate::support::{Answer, Client, TestGateway};
use crate::traffic::{
    CHAT, Flood, chat, fast_mock, post, post_json, slow_mock, status, until, until_known,
    without_queue,
};
use crate::upstream::{Upstream, page};
use http_body_util::Full;
use serde_json::{Value, json};
use tidegate_testkit::mock::MetricsStyle;

const STYLES: [(MetricsStyle, &str, bool); 6] = [
    (MetricsStyle::Vllm, "vllm", true),
    (MetricsStyle::Sglang, "sglang", true),
    (MetricsStyle::Trtllm, "trt_llm", true),
    (MetricsStyle::Tgi, "tgi", false),
    (MetricsStyle::Llamacpp, "llama_cpp", false),
    (MetricsStyle::Tidegate, "tidegate", true),
];

const SCRAPED: &str = "[routing]\nload_source = \"scrape\"\nscrape_interval_ms = 20\n";

fn rank(stats: &Value) -> Value {
    stats["upstreams"][0]["load"]["ranks"][0].clone()
}

#[tokio::test]
async fn every_kind_of_server_is_recognised_and_its_requests_count() {
    for (style, kind, _) in STYLES {
        let mock = slow_mock(|config| {
            config.metrics = style;
            config.engine.max_running = 2;
        });
        let config = format!("{SCRAPED}active_requests_threshold = 3\n");
        let gateway = without_queue(&config, &[mock.address()]);
        until_known(&gateway).await;
        let source = gateway.stats().await["upstreams"][0]["load_source"].clone();
        assert_eq!(source, json!({"kind": kind, "problem": null, "orca": false}));
        assert_eq!(status(&gateway).await, 200, "{kind}");
        // Two are worked on and one waits, all sent by somebody else.
        let client = Client::new(mock.address());
        let held = Flood::new(client, 3, || post(client, CHAT, chat("tidegate-mock").to_string()));
        let full = |stats: &Value| {
            let report = &rank(stats)["report"];
            (&report["running"], &report["waiting"]) == (&json!(2), &json!(1))
        };
        until(&gateway, kind, full).await;
        assert_eq!(status(&gateway).await, 503, "{kind}");
        held.leave().await;
        until(&gateway, kind, |stats| rank(stats)["requests"] == 0).await;
        assert_eq!(status(&gateway).await, 200, "{kind}");
        let metrics = Client::new(gateway.admin).get("/metrics").await;
        let info = format!(
            "tidegate_upstream_kind_info{{upstream=\"{}\",kind=\"{kind}\"}} 1\n",
            mock.address()
        );
        assert!(metrics.text().contains(&info), "{kind}");
    }
}

#[tokio::test]
async fn every_kind_that_tells_its_cache_is_busy_by_it() {
    for (style, kind, tells_kv) in STYLES {
        let mock = slow_mock(|config| config.metrics = style);
        let config = format!("{SCRAPED}active_decode_blocks_threshold = 0.5\n");
        let gateway = without_queue(&config, &[mock.address()]);
        until_known(&gateway).await;
        assert_eq!(status(&gateway).await, 200, "{kind}");
        // Of 256 blocks of 16 tokens this takes 200.
        let client = Client::new(mock.address());
        let body = json!({
            "model": "tidegate-mock", "prompt": "abcd".repeat(3200), "max_tokens": 2
        });
        let held = Flood::new(client, 1, || post(client, "/v1/completions", body.to_string()));
        if !tells_kv {
            until(&gateway, kind, |stats| rank(stats)["report"]["running"] == 1).await;
            assert_eq!(status(&gateway).await, 200, "{kind} says nothing of its cache");
            held.leave().await;
            continue;
        }
        until(&gateway, kind, |stats| stats["models"][0]["busy"] == 1).await;
        let refused = Client::new(gateway.address).get("/").await;
        assert_eq!(refused.json()["threshold"], "active_decode_blocks", "{kind}");
        held.leave().await;
        until(&gateway, kind, |stats| stats["models"][0]["busy"] == 0).await;
        assert_eq!(status(&gateway).await, 200, "{kind}");
    }
}

#[tokio::test]
async fn a_server_of_several_ranks_tells_of_each() {
    for (style, kind) in [
        (MetricsStyle::Vllm, "vllm"),
        (MetricsStyle::Sglang, "sglang"),
        (MetricsStyle::Tidegate, "tidegate"),
    ] {
        let mock = fast_mock(|config| {
            config.metrics = style;
            config.engine.ranks = 4;
        });
        let gateway = TestGateway::start(SCRAPED, &[mock.address()]);
        let four = |stats: &Value| {
            stats["upstreams"][0]["load"]["ranks"].as_array().is_some_and(|ranks| ranks.len() == 4)
        };
        until(&gateway, kind, four).await;
    }
}

const BUSY_TEXT: &str = "TEXT named_metrics.kv_cache_usage_perc=0.95, \
                         named_metrics.num_requests_waiting=3.0";
const BUSY_JSON: &str = r#"JSON {"named_metrics": {"kv_cache_usage_perc": 0.95}}"#;

/// Believes what it was told for longer than any test takes.
fn by_headers(orca: &str) -> String {
    by_headers_for(60_000, orca)
}

fn by_headers_for(ttl_ms: u64, orca: &str) -> String {
    format!(
        "[routing]\nload_source = \"headers\"\norca = \"{orca}\"\nreport_ttl_ms = {ttl_ms}\n\
         active_decode_blocks_threshold = 0.85\n"
    )
}

#[tokio::test]
async fn load_in_the_headers_of_answers_is_asked_for_read_and_kept_from_the_client() {
    for told in [BUSY_TEXT, BUSY_JSON] {
        let upstream = Upstream::start().await;
        upstream.tell_in_headers(told);
        let gateway = without_queue(&by_headers("ask"), &[upstream.address]);
        let first = Client::new(gateway.address).get("/").await;
        assert_eq!(first.status, 200, "nothing is known yet");
        assert_eq!(upstream.last().headers["endpoint-load-metrics-format"], "text");
        assert!(!first.headers.contains_key("endpoint-load-metrics"), "{:?}", first.headers);
        let stats = gateway.stats().await;
        assert_eq!(stats["upstreams"][0]["load_source"]["orca"], true);
        assert_eq!(rank(&stats)["report"]["active_decode_blocks"], 950);
        assert_eq!(status(&gateway).await, 503);
    }
}

#[tokio::test]
async fn load_in_the_headers_of_answers_grows_old() {
    let upstream = Upstream::start().await;
    upstream.tell_in_headers(BUSY_TEXT);
    let gateway = TestGateway::start(&by_headers_for(300, "ask"), &[upstream.address]);
    assert_eq!(status(&gateway).await, 200, "nothing is known yet");
    assert_eq!(gateway.stats().await["upstreams"][0]["load_source"]["orca"], true, "it was read");
    // Who is refused brings no news; that its word grows old does.
    until(&gateway, "its word is old", |stats| rank(stats)["report"] == Value::Null).await;
    assert_eq!(status(&gateway).await, 200);
}

#[tokio::test]
async fn headers_that_nobody_asked_for_pass_on_to_the_client() {
    for (orca, read) in [("read", true), ("off", false)] {
        let upstream = Upstream::start().await;
        upstream.tell_in_headers(BUSY_TEXT);
        let gateway = without_queue(&by_headers(orca), &[upstream.address]);
        let first = Client::new(gateway.address).get("/").await;
        assert_eq!(first.header("endpoint-load-metrics"), BUSY_TEXT, "{orca}");
        assert!(!upstream.last().headers.contains_key("endpoint-load-metrics-format"), "{orca}");
        assert_eq!(gateway.stats().await["upstreams"][0]["load_source"]["orca"], read, "{orca}");
        assert_eq!(status(&gateway).await, if read { 503 } else { 200 }, "{orca}");
    }
}

#[tokio::test]
async fn a_server_as_it_is_answers_in_the_form_that_is_asked_for() {
    let mock = fast_mock(|config| config.metrics = MetricsStyle::None);
    let gateway = TestGateway::start(&by_headers("ask"), &[mock.address()]);
    let answer = post_json(gateway.address, CHAT, &chat("tidegate-mock")).await;
    assert_eq!(answer.status, 200);
    assert!(!answer.headers.contains_key("endpoint-load-metrics"));
    let stats = gateway.stats().await;
    assert_eq!(stats["upstreams"][0]["load_source"]["orca"], true);
    assert_eq!(rank(&stats)["report"]["waiting"], 0);
}

#[tokio::test]
async fn with_headers_alone_nothing_else_is_sent_to_a_server() {
    let upstream = Upstream::start().await.telling(&page(&[(990, 1000, 0, 9)]));
    let gateway = TestGateway::start(&by_headers("read"), &[upstream.address]);
    for _ in 0..20 {
        assert_eq!(status(&gateway).await, 200);
    }
    assert_eq!(upstream.pages_asked(), 0);
}

#[tokio::test]
async fn an_upstream_can_be_asked_for_by_name() {
    let upstreams = [Upstream::start().await, Upstream::start().await];
    let config = "[routing]\npick = \"direct\"\nactive_requests_threshold = 1\n";
    let gateway = TestGateway::start(config, &[upstreams[0].address, upstreams[1].address]);
    let client = Client::new(gateway.address);
    let ask = async |name: String| -> Answer {
        let request = client.request("GET", "/").header("tidegate-upstream", name);
        client.send(request.body(Full::default()).unwrap()).await
    };
    for _ in 0..5 {
        assert_eq!(ask(upstreams[1].address.to_string()).await.status, 200);
    }
    assert_eq!((upstreams[0].came().len(), upstreams[1].came().len()), (0, 5));
    let unknown = ask("nobody:1".to_owned()).await;
    assert_eq!(
        (unknown.status.as_u16(), &unknown.json()["reason"]),
        (400, &json!("unknown_upstream"))
    );
}
