//! What is counted, in the names of the document under our prefix.

use crate::support::{Client, TestGateway, eventually};
use crate::traffic::{Flood, until, until_known, upstream_toml, without_queue};
use crate::upstream::{Upstream, page};
use tidegate_testkit::promtool::{Verdict, check_metrics};

async fn metrics(gateway: &TestGateway) -> String {
    Client::new(gateway.admin).get("/metrics").await.text().to_owned()
}

/// The value of a series, by its name and labels.
fn value(metrics: &str, series: &str) -> f64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(&format!("{series} ")));
    line.unwrap_or_else(|| panic!("no {series} in {metrics}")).parse().unwrap()
}

fn rejected(metrics: &str) -> f64 {
    let lines = metrics.lines().filter(|line| line.starts_with("tidegate_tasks_rejected_total{"));
    lines.map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum()
}

fn promtool_accepts(text: &str) {
    let Verdict { code, complaints } = check_metrics(text).unwrap();
    assert!(code == Some(0) && complaints.is_empty(), "{complaints}");
}

#[tokio::test]
async fn issued_rejected_and_queued_are_right() {
    let upstream = Upstream::closed().await;
    let gateway = without_queue("[routing]\nactive_requests_threshold = 5\n", &[upstream.address]);
    let mut flood = Flood::of_gets(Client::new(gateway.address), 30);
    flood.answers(25).await;
    eventually("five are there", || upstream.active() == 5).await;
    let text = metrics(&gateway).await;
    assert_eq!(value(&text, "tidegate_tasks_issued_total"), 30.0);
    assert_eq!(value(&text, "tidegate_tasks_rejected_total{reason=\"all_busy\"}"), 25.0);
    assert_eq!(rejected(&text), 25.0, "for no other reason");
    assert_eq!(value(&text, "tidegate_requests_queued"), 5.0);
    assert_eq!(value(&text, "tidegate_upstreams{model=\"*\"}"), 1.0);
    assert_eq!(value(&text, "tidegate_upstreams_busy{model=\"*\"}"), 1.0);
    upstream.open();
    flood.rest().await;
    gateway.balances().await;
    // What the control plane is asked is no task.
    let text = metrics(&gateway).await;
    assert_eq!(value(&text, "tidegate_tasks_issued_total"), 30.0);
    assert_eq!(value(&text, "tidegate_requests_queued"), 0.0);
    assert_eq!(value(&text, "tidegate_upstreams_busy{model=\"*\"}"), 0.0);
    promtool_accepts(&text);
}

#[tokio::test]
async fn limits_of_every_kind_count_as_rejections_by_their_reason() {
    let upstream = Upstream::closed().await;
    let config = format!(
        "[admission]\nglobal_limit = 12\nhigh_limit = 4\nnormal_limit = 4\nlow_limit = 2\n\
         [routing]\nlimit = 1\n[queue]\nsize = 1\noverflow_size = 0\n\
         [[model]]\nname = \"gone\"\n{}",
        upstream_toml(&upstream, &["here"])
    );
    let gateway = TestGateway::start(&config, &[]);
    let client = Client::new(gateway.address);
    let ask = |priority: &'static str, model: &'static str| {
        let request = client.request("GET", "/").header("tidegate-priority", priority);
        request.header("tidegate-model", model).body(http_body_util::Full::default()).unwrap()
    };
    // One is sent, one waits, the third finds the queue full.
    let mut high = Flood::new(client, 3, || ask("high", "here"));
    assert_eq!(high.answers(1).await[0].json()["reason"], "all_busy");
    assert_eq!(client.send(ask("high", "gone")).await.json()["reason"], "no_upstreams");
    let text = metrics(&gateway).await;
    for (reason, count) in [("all_busy", 1.0), ("no_upstreams", 1.0), ("queue_displaced", 0.0)] {
        let series = format!("tidegate_tasks_rejected_total{{reason=\"{reason}\"}}");
        assert_eq!(value(&text, &series), count, "{reason}");
    }
    assert_eq!((value(&text, "tidegate_tasks_issued_total"), rejected(&text)), (4.0, 2.0));
    upstream.open();
    high.rest().await;
    gateway.balances().await;
}

#[tokio::test]
async fn the_load_is_told_by_upstream_and_rank() {
    let upstream = Upstream::start().await.telling(&page(&[(7, 100, 42, 3), (9, 200, 0, 1)]));
    let config = "[routing]\nload_source = \"scrape\"\nscrape_interval_ms = 10\n\
                  active_decode_blocks_threshold = 0.85\nactive_prefill_tokens_threshold = 10000\n";
    let gateway = TestGateway::start(config, &[upstream.address]);
    until_known(&gateway).await;
    until(&gateway, "both ranks are known", |stats| {
        stats["upstreams"][0]["load"]["ranks"].as_array().is_some_and(|ranks| ranks.len() == 2)
    })
    .await;
    let text = metrics(&gateway).await;
    for (name, first, second) in [
        ("active_decode_blocks", 7.0, 9.0),
        ("kv_total_blocks", 100.0, 200.0),
        ("active_prefill_tokens", 42.0, 0.0),
        ("active_requests", 3.0, 1.0),
    ] {
        for (rank, expected) in [(0, first), (1, second)] {
            let labels = format!("upstream=\"{}\",rank=\"{rank}\"", upstream.address);
            assert_eq!(value(&text, &format!("tidegate_{name}{{{labels}}}")), expected, "{name}");
        }
    }
    let threshold = |name| {
        value(&text, &format!("tidegate_busy_threshold{{model=\"*\",threshold=\"{name}\"}}"))
    };
    assert_eq!(threshold("active_decode_blocks"), 0.85);
    assert_eq!(threshold("active_prefill_tokens"), 10_000.0);
    promtool_accepts(&text);
}

#[tokio::test]
async fn awkward_names_of_models_and_many_upstreams_are_still_accepted() {
    let (a, b) = (Upstream::start().await, Upstream::start().await);
    let config = format!(
        "{}[[upstream]]\nurl = \"http://{}\"\nmodels = ['quo\"te', 'back\\slash', 'ümlaut/7B']\n",
        upstream_toml(&a, &["Qwen/Qwen3-0.6B"]),
        b.address
    );
    let gateway = TestGateway::start(&config, &[]);
    promtool_accepts(&metrics(&gateway).await);
}
