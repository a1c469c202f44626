//! What users of another busy-aware router report of it, each as a test.

use crate::support::{Client, RawUpstream, Reserved, TestGateway, eventually};
use crate::traffic::{
    Flood, addresses, count, post_json, until, until_known, until_status, upstream_toml,
    without_queue,
};
use crate::upstream::{Upstream, page};
use crate::waiting::{assert_refused, assert_served, send};
use http_body_util::Full;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const SCRAPED: &str = "[routing]\nload_source = \"scrape\"\nscrape_interval_ms = 10\n";

#[tokio::test]
async fn an_upstream_is_not_latched_busy_for_ever_on_stale_data() {
    let upstream = Upstream::start().await.telling(&page(&[(990, 1000, 20_000, 50)]));
    let config = format!(
        "{SCRAPED}report_ttl_ms = 200\nactive_decode_blocks_threshold = 0.85\n\
         active_prefill_tokens_threshold = 10000\nactive_requests_threshold = 8\n"
    );
    let gateway = without_queue(&config, &[upstream.address]);
    until_status(&gateway, 503).await;
    upstream.hold_pages();
    until(&gateway, "it is not taken for busy", |stats| stats["models"][0]["busy"] == 0).await;
    for _ in 0..10 {
        assert_eq!(Client::new(gateway.address).get("/").await.status, 200);
    }
}

#[tokio::test]
async fn two_publishers_do_not_overwrite_one_signal() {
    let upstream = Upstream::start().await.telling(&page(&[(100, 1000, 0, 1)]));
    upstream.tell_in_headers("TEXT named_metrics.kv_cache_usage_perc=0.99");
    let config = format!("{SCRAPED}orca = \"ask\"\nactive_decode_blocks_threshold = 0.85\n");
    let gateway = TestGateway::start(&config, &[upstream.address]);
    until_known(&gateway).await;
    for _ in 0..30 {
        assert_eq!(Client::new(gateway.address).get("/").await.status, 200);
        let stats = gateway.stats().await;
        let report = &stats["upstreams"][0]["load"]["ranks"][0]["report"];
        assert_eq!(report["active_decode_blocks"], 100, "the page alone speaks");
    }
    assert_eq!(gateway.stats().await["upstreams"][0]["load_source"]["orca"], false);
}

#[tokio::test]
async fn zeros_that_mean_not_ready_are_not_read_as_idle() {
    let starting = Upstream::start().await.telling(&page(&[(0, 0, 0, 0)]));
    let config =
        format!("{SCRAPED}pick = \"least_loaded\"\nactive_decode_blocks_threshold = 0.85\n");
    let gateway = TestGateway::start(&config, &[starting.address]);
    until_known(&gateway).await;
    let answer = Client::new(gateway.address).get("/").await;
    assert_eq!(answer.json()["reason"], "upstreams_starting");
    assert!(starting.came().is_empty());
}

#[tokio::test]
async fn an_unknown_model_is_not_answered_with_200_and_nulls() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start(&upstream_toml(&upstream, &["m"]), &[]);
    for port in [gateway.address, gateway.admin] {
        let set = json!({"model": "typo", "active_decode_blocks_threshold": 0.5});
        let answer = post_json(port, "/busy_threshold", &set).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["field"]), (404, &json!("model")));
        assert_eq!(Client::new(port).get("/busy_threshold?model=typo").await.status, 404);
    }
}

#[tokio::test]
async fn thresholds_can_be_cleared() {
    let upstream = Upstream::closed().await;
    let config =
        format!("[routing]\nactive_requests_threshold = 1\n{}", upstream_toml(&upstream, &["m"]));
    let gateway = without_queue(&config, &[]);
    let client = Client::new(gateway.address);
    let held = Flood::of_gets(client, 1);
    eventually("the place is taken", || upstream.active() == 1).await;
    assert_eq!(client.get("/").await.status, 503);
    let clear = client.request("DELETE", "/busy_threshold?model=m").body(Full::default()).unwrap();
    assert_eq!(client.send(clear).await.status, 200);
    let more = Flood::of_gets(client, 20);
    eventually("there is no threshold any more", || upstream.active() == 21).await;
    upstream.open();
    assert_eq!(count(&held.rest().await, 200) + count(&more.rest().await, 200), 21);
}

#[tokio::test]
async fn overload_and_unavailability_are_told_apart() {
    let upstream = Upstream::start().await;
    let gone = Reserved::new();
    let config = format!(
        "[[model]]\nname = \"busy\"\nactive_requests_threshold = 0\n[[model]]\nname = \"none\"\n\
         [[upstream]]\nurl = \"http://{}\"\nmodels = [\"dead\"]\n{}",
        gone.address,
        upstream_toml(&upstream, &["busy"])
    );
    let gateway = without_queue(&config, &[]);
    let client = Client::new(gateway.address);
    for (model, status, kind, reason) in [
        ("busy", 503, "service_unavailable", "all_busy"),
        ("none", 503, "no_upstreams_available", "no_upstreams"),
        ("dead", 502, "bad_gateway", "connect_failed"),
    ] {
        let request = client.request("GET", "/").header("tidegate-model", model);
        let answer = client.send(request.body(Full::default()).unwrap()).await;
        let body = answer.json();
        assert_eq!(answer.status, status, "{model}: {body}");
        assert_eq!((&body["type"], &body["reason"]), (&json!(kind), &json!(reason)), "{model}");
    }
}

#[tokio::test]
async fn priorities_are_not_ignored_when_shedding() {
    let upstream = Upstream::closed().await;
    let config = "[routing]\nactive_requests_threshold = 10\n\
                  [queue]\nsize = 1\noverflow_size = 0\nwait_max_ms = 3600000\n";
    let gateway = TestGateway::start(config, &[upstream.address]);
    let held = Flood::of_gets(Client::new(gateway.address), 10);
    eventually("all slots are taken", || upstream.active() == 10).await;
    let low = send(&gateway, "/low", "low").await;
    let normal = send(&gateway, "/normal", "normal").await;
    assert_refused(low, "queue_displaced").await;
    assert_refused(send(&gateway, "/low", "low").await, "all_busy").await;
    upstream.open();
    assert_eq!(count(&held.rest().await, 200), 10);
    assert_served([normal]).await;
}

/// Every upstream resets every request. What may be repeated is, but not without end.
#[tokio::test]
async fn retries_are_not_multiplied() {
    let read = Arc::new(AtomicUsize::new(0));
    let mut breaking = Vec::new();
    for _ in 0..4 {
        let read = Arc::clone(&read);
        let upstream = RawUpstream::start(move |mut tcp| {
            let read = Arc::clone(&read);
            async move {
                if RawUpstream::read_head(&mut tcp).await {
                    read.fetch_add(1, Ordering::SeqCst);
                    let socket = socket2::SockRef::from(&tcp);
                    socket.set_linger(Some(std::time::Duration::ZERO)).unwrap();
                }
            }
        });
        breaking.push(upstream.await.address);
    }
    let gateway = TestGateway::start("[listen]\nthreads = 1\n", &breaking);
    let answers = Flood::of_gets(Client::new(gateway.address), 400).rest().await;
    let admitted = answers.iter().filter(|answer| answer.status == 502).count();
    assert!(admitted >= 100, "{admitted}");
    let sent = read.load(Ordering::SeqCst);
    assert!(sent >= admitted, "each was sent once at least: {sent} of {admitted}");
    assert!(sent <= admitted * 3 / 2, "the budget is a part of the traffic: {sent} of {admitted}");
    gateway.balances().await;
}

#[tokio::test]
async fn limits_are_not_multiplied_by_the_number_of_gateways() {
    let upstreams = [Upstream::closed().await.honest(), Upstream::closed().await.honest()];
    let config = format!("{SCRAPED}active_requests_threshold = 8\n");
    let gateways = [(); 3].map(|()| without_queue(&config, &addresses(&upstreams)));
    for gateway in &gateways {
        until_known(gateway).await;
    }
    let mut flood = Flood::of_gets(Client::new(gateways[0].address), 50);
    assert_eq!(count(&flood.answers(34).await, 503), 34);
    for gateway in &gateways[1..] {
        let full = |stats: &Value| stats["models"][0]["busy"] == 2;
        until(gateway, "it has heard that both are full", full).await;
        let refused = Flood::of_gets(Client::new(gateway.address), 50).rest().await;
        assert_eq!(count(&refused, 503), 50);
    }
    assert!(upstreams.iter().all(|upstream| upstream.peak() <= 8));
    upstreams.iter().for_each(Upstream::open);
    assert_eq!(count(&flood.rest().await, 200), 16);
    for gateway in &gateways {
        until(gateway, "both are free", |stats| stats["models"][0]["busy"] == 0).await;
        assert_eq!(Client::new(gateway.address).get("/").await.status, 200);
    }
}
