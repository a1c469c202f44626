//! States, sizes, totals and the alert, as an operator sees them.

use crate::support::{Client, TestGateway};
use crate::traffic::{until, upstream_toml};
use crate::upstream::Upstream;
use crate::waiting::{assert_refused, assert_served, one_slot, queue, send, send_with};
use serde_json::{Value, json};
use tidegate_testkit::promtool::{Verdict, check_metrics};

async fn assert_series(gateway: &TestGateway, lines: &[&str]) {
    let metrics = Client::new(gateway.admin).get("/metrics").await;
    for line in lines {
        let found = metrics.text().lines().any(|one| one == *line);
        assert!(found, "{line} is not in\n{}", metrics.text());
    }
    for gone in ["tidegate_outbox_", "tidegate_slow_upstreams"] {
        assert!(!metrics.text().contains(gone), "{gone}");
    }
    let Verdict { code, complaints } = check_metrics(metrics.text()).unwrap();
    assert!(code == Some(0) && complaints.is_empty(), "{complaints}");
}

#[tokio::test]
async fn states_sizes_and_the_alert_are_seen() {
    let upstream = Upstream::closed().await;
    let config = "[routing]\nlimit = 1\n[queue]\nsize = 10\noverflow_size = 5\n\
                  wait_max_ms = 3600000\n";
    let gateway = TestGateway::start(config, &[upstream.address]);
    let mut sent = vec![send(&gateway, "/", "normal").await];
    let mut seen = Vec::new();
    for size in 1..=15_u64 {
        sent.push(send(&gateway, "/", "normal").await);
        let queue = gateway.stats().await["models"][0]["queue"].clone();
        assert_eq!((&queue["high"], &queue["low"]), (&json!(0), &json!(0)));
        assert_eq!((&queue["normal"], &queue["queued"]), (&json!(size), &json!(size)));
        assert_eq!((&queue["size"], &queue["service_us"]), (&json!(10), &Value::Null));
        seen.push(queue["state"].as_str().unwrap().to_owned());
    }
    seen.dedup();
    assert_eq!(seen, ["HEALTHY", "THROTTLED", "BATCHING", "OVERFLOW", "SATURATED"]);
    let stats = until(&gateway, "the alert holds", |stats| stats["slow_models"] == 1).await;
    assert_eq!(stats["upstreams"][0]["load"]["limit"], 1);
    assert_eq!(stats["upstreams"][0].get("outbox"), None);
    let limit = format!("tidegate_upstream_limit{{upstream=\"{}\"}} 1", upstream.address);
    let lines = [
        "tidegate_queue_state{model=\"*\",state=\"saturated\"} 1",
        "tidegate_queue_state{model=\"*\",state=\"healthy\"} 0",
        "tidegate_queue_size{model=\"*\",priority=\"high\"} 0",
        "tidegate_queue_size{model=\"*\",priority=\"normal\"} 15",
        "tidegate_queue_size{model=\"*\",priority=\"low\"} 0",
        "tidegate_queue_queued_total{model=\"*\"} 15",
        "tidegate_slow_models 1",
        "tidegate_alert{alert=\"destination_slow\"} 1",
        "tidegate_alerts_raised_total{alert=\"destination_slow\"} 1",
        &limit,
    ];
    assert_series(&gateway, &lines).await;
    upstream.open();
    assert_served(sent).await;
    let stats = until(&gateway, "the alert is over", |stats| stats["slow_models"] == 0).await;
    let queue = &stats["models"][0]["queue"];
    assert_eq!((&queue["state"], &queue["normal"]), (&json!("HEALTHY"), &json!(0)));
    assert_eq!((&queue["served"], &queue["displaced"]), (&json!(15), &json!(0)));
    let lines = [
        "tidegate_queue_state{model=\"*\",state=\"healthy\"} 1",
        "tidegate_queue_size{model=\"*\",priority=\"normal\"} 0",
        "tidegate_queue_ended_total{model=\"*\",end=\"served\"} 15",
        "tidegate_slow_models 0",
        "tidegate_alert{alert=\"destination_slow\"} 0",
        "tidegate_alerts_raised_total{alert=\"destination_slow\"} 1",
    ];
    assert_series(&gateway, &lines).await;
}

#[tokio::test]
async fn every_end_of_a_wait_is_counted() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(&one_slot(3), &[upstream.address]);
    let first = send(&gateway, "/first", "normal").await;
    let expires = send_with(&gateway, "/expires", &[("tidegate-timeout-ms", "20")]).await;
    assert_refused(expires, "queue_timeout").await;
    let at_once = send_with(&gateway, "/at-once", &[("tidegate-timeout-ms", "0")]).await;
    assert_refused(at_once, "all_busy").await;
    let leaves = send(&gateway, "/leaves", "low").await;
    leaves.abort();
    until(&gateway, "it has left", |stats| stats["models"][0]["queue"]["left"] == 1).await;
    let served = [send(&gateway, "/high", "high").await, send(&gateway, "/normal", "normal").await];
    let displaced = send(&gateway, "/displaced", "low").await;
    let urgent = send(&gateway, "/urgent", "high").await;
    assert_refused(displaced, "queue_displaced").await;
    assert_refused(send(&gateway, "/full", "low").await, "all_busy").await;
    upstream.open();
    assert_served([first, urgent].into_iter().chain(served)).await;
    gateway.balances().await;
    let queue = queue(&gateway);
    let totals = queue.totals;
    let ended = totals.served + totals.displaced + totals.expired + totals.left;
    assert_eq!((totals.queued, ended), (6, 6), "{queue:?}");
    let lines = [
        "tidegate_queue_queued_total{model=\"*\"} 6",
        "tidegate_queue_ended_total{model=\"*\",end=\"served\"} 3",
        "tidegate_queue_ended_total{model=\"*\",end=\"displaced\"} 1",
        "tidegate_queue_ended_total{model=\"*\",end=\"expired\"} 1",
        "tidegate_queue_ended_total{model=\"*\",end=\"left\"} 1",
        "tidegate_queue_refused_total{model=\"*\",cause=\"full\"} 1",
        "tidegate_queue_refused_total{model=\"*\",cause=\"wait\"} 1",
        "tidegate_tasks_rejected_total{reason=\"all_busy\"} 2",
        "tidegate_tasks_rejected_total{reason=\"queue_displaced\"} 1",
        "tidegate_tasks_rejected_total{reason=\"queue_timeout\"} 1",
    ];
    assert_series(&gateway, &lines).await;
}

#[tokio::test]
async fn each_model_has_a_queue_of_its_own() {
    let (a, b) = (Upstream::closed().await, Upstream::closed().await);
    let config =
        format!("{}{}{}", one_slot(10), upstream_toml(&a, &["a"]), upstream_toml(&b, &["b"]));
    let gateway = TestGateway::start(&config, &[]);
    let mut sent = Vec::new();
    for (model, count) in [("a", 4), ("b", 2)] {
        for _ in 0..count {
            let headers = [("tidegate-model", model), ("tidegate-priority", "high")];
            let client = Client::new(gateway.address);
            let mut request = crate::traffic::get(client, "/");
            for (name, value) in headers {
                request.headers_mut().insert(name, value.parse().unwrap());
            }
            sent.push(tokio::spawn(async move { client.send(request).await }));
        }
    }
    let of = |stats: &Value, model: &str| {
        let models = stats["models"].as_array().unwrap();
        let found = models.iter().find(|one| one["model"] == model);
        found.unwrap_or_else(|| panic!("no {model}"))["queue"]["high"].clone()
    };
    let queued = |stats: &Value| (of(stats, "a"), of(stats, "b")) == (json!(3), json!(1));
    until(&gateway, "each has its own", queued).await;
    let lines = [
        "tidegate_queue_size{model=\"a\",priority=\"high\"} 3",
        "tidegate_queue_size{model=\"b\",priority=\"high\"} 1",
    ];
    assert_series(&gateway, &lines).await;
    b.open();
    until(&gateway, "one is empty", |stats| of(stats, "b") == 0 && of(stats, "a") == 3).await;
    a.open();
    assert_served(sent).await;
    gateway.balances().await;
}
