//! What a rejection says.

use crate::support::{Answer, Client, TestGateway, eventually};
use crate::traffic::{Flood, addresses, until_known, upstream_toml};
use crate::upstream::{Upstream, page};
use http_body_util::Full;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Two upstreams that are full, and the answer to one more.
async fn refused(settings: &str) -> (Answer, Vec<Upstream>, TestGateway) {
    let upstreams = Upstream::several(2).await;
    let config = format!("[routing]\nactive_requests_threshold = 1\n{settings}");
    let gateway = TestGateway::start(&config, &addresses(&upstreams));
    let held = Flood::of_gets(Client::new(gateway.address), 2);
    eventually("both are full", || upstreams.iter().all(|upstream| upstream.active() == 1)).await;
    let answer = Client::new(gateway.address).get("/").await;
    upstreams.iter().for_each(Upstream::open);
    held.rest().await;
    (answer, upstreams, gateway)
}

fn keys(body: &Value) -> BTreeSet<&str> {
    body.as_object().unwrap().keys().map(String::as_str).collect()
}

#[tokio::test]
async fn it_has_the_three_fields_of_the_document_and_what_is_needed_to_act() {
    let (answer, _upstreams, _gateway) = refused("").await;
    let body = answer.json();
    assert_eq!(answer.status, 503);
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(
        body["message"],
        "Service temporarily unavailable: All workers are busy, please retry later"
    );
    assert_eq!(body["type"], "service_unavailable");
    assert_eq!(body["code"], 503);
    assert_eq!(body["reason"], "all_busy");
    assert_eq!((&body["busy_upstreams"], &body["total_upstreams"]), (&json!(2), &json!(2)));
    assert_eq!(body["threshold"], "active_requests");
    let expected = [
        "busy_upstreams",
        "code",
        "message",
        "reason",
        "retry_after_ms",
        "threshold",
        "total_upstreams",
        "type",
    ];
    assert_eq!(keys(&body), BTreeSet::from(expected));
    let wait_ms = body["retry_after_ms"].as_u64().unwrap();
    assert!(wait_ms > 0);
    assert_eq!(answer.header("tidegate-retry-after-ms"), wait_ms.to_string());
    assert_eq!(answer.header("retry-after"), wait_ms.div_ceil(1000).max(1).to_string());
}

#[tokio::test]
async fn the_threshold_that_is_exceeded_is_named() {
    for (page, name) in [
        (page(&[(860, 1000, 0, 0)]), "active_decode_blocks"),
        (page(&[(0, 1000, 10_001, 0)]), "active_prefill_tokens"),
        (page(&[(0, 1000, 0, 5)]), "active_requests"),
    ] {
        let upstream = Upstream::start().await.telling(&page);
        let config = "[routing]\nload_source = \"scrape\"\nscrape_interval_ms = 10\n\
                      active_decode_blocks_threshold = 0.85\nactive_requests_threshold = 5\n\
                      active_prefill_tokens_threshold = 10000\n";
        let gateway = TestGateway::start(config, &[upstream.address]);
        until_known(&gateway).await;
        let answer = Client::new(gateway.address).get("/").await;
        assert_eq!(
            (answer.status.as_u16(), answer.json()["threshold"].as_str()),
            (503, Some(name))
        );
    }
}

#[tokio::test]
async fn exactly_at_a_threshold_of_blocks_or_tokens_an_upstream_is_not_busy_yet() {
    let upstream = Upstream::start().await.telling(&page(&[(850, 1000, 10_000, 0)]));
    let config = "[routing]\nload_source = \"scrape\"\nscrape_interval_ms = 10\n\
                  active_decode_blocks_threshold = 0.85\nactive_prefill_tokens_threshold = 10000\n";
    let gateway = TestGateway::start(config, &[upstream.address]);
    until_known(&gateway).await;
    assert_eq!(Client::new(gateway.address).get("/").await.status, 200);
}

#[tokio::test]
async fn its_status_can_be_the_one_that_model_providers_use() {
    for status in [503, 529, 429] {
        let (answer, _upstreams, _gateway) =
            refused(&format!("overload_status = \"{status}\"\n")).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["code"]), (status, &json!(status)));
        assert_eq!(answer.json()["reason"], "all_busy");
        assert!(answer.header("retry-after").parse::<u64>().unwrap() >= 1);
    }
}

#[tokio::test]
async fn advice_differs_from_client_to_client() {
    let upstream = Upstream::closed().await;
    let gateway =
        TestGateway::start("[routing]\nactive_requests_threshold = 0\n", &[upstream.address]);
    let mut waits = BTreeSet::new();
    for _ in 0..20 {
        let answer = Client::new(gateway.address).get("/").await;
        waits.insert(answer.json()["retry_after_ms"].as_u64().unwrap());
    }
    assert!(waits.len() > 5, "those who are refused together do not return together: {waits:?}");
}

#[tokio::test]
async fn a_model_that_nobody_serves_is_unavailable_and_not_overloaded() {
    let upstream = Upstream::start().await;
    let config = format!("[[model]]\nname = \"gone\"\n{}", upstream_toml(&upstream, &["here"]));
    let gateway = TestGateway::start(&config, &[]);
    let client = Client::new(gateway.address);
    let request = client.request("GET", "/").header("tidegate-model", "gone");
    let answer = client.send(request.body(Full::default()).unwrap()).await;
    let body = answer.json();
    assert_eq!(
        (answer.status.as_u16(), body["type"].as_str()),
        (503, Some("no_upstreams_available"))
    );
    assert_eq!(body["reason"], "no_upstreams");
    assert_eq!((&body["busy_upstreams"], &body["total_upstreams"]), (&json!(0), &json!(0)));
    assert!(answer.header("retry-after").parse::<u64>().unwrap() >= 1);
    assert_eq!(gateway.stats().await["tasks"]["rejected"]["no_upstreams"], 1);
}

#[tokio::test]
async fn grpc_is_told_in_trailers_alone() {
    let upstream = Upstream::closed().await;
    let text = format!(
        "[routing]\nactive_requests_threshold = 0\n[[model]]\nname = \"gone\"\n{}",
        upstream_toml(&upstream, &["here"])
    );
    let gateway = TestGateway::start(&text, &[]);
    let client = Client::h2(gateway.address);
    for (model, code) in [("here", "8"), ("gone", "14")] {
        let request = client
            .request("POST", "/x.Y/Z")
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .header("tidegate-model", model);
        let answer = client.send(request.body(Full::default()).unwrap()).await;
        assert_eq!((answer.status.as_u16(), answer.header("grpc-status")), (200, code), "{model}");
        assert!(answer.body.is_empty() && answer.trailers.is_none());
        assert_eq!(answer.header("content-type"), "application/grpc");
        assert!(answer.header("grpc-retry-pushback-ms").parse::<u64>().unwrap() > 0);
    }
}

#[tokio::test]
async fn grpc_is_told_of_a_full_outbox_in_the_same_way() {
    let upstream = Upstream::closed().await;
    let config = "[outbox]\nconcurrency = 1\nqueue_size = 1\noverflow_size = 0\n";
    let gateway = TestGateway::start(config, &[upstream.address]);
    let client = Client::h2(gateway.address);
    let call = || {
        let request = client.request("POST", "/x.Y/Z").header("content-type", "application/grpc");
        request.header("tidegate-priority", "high").body(Full::default()).unwrap()
    };
    let mut calls = Flood::new(client, 3, call);
    let refused = calls.answers(1).await.remove(0);
    assert_eq!((refused.status.as_u16(), refused.header("grpc-status")), (200, "8"));
    assert!(refused.header("grpc-retry-pushback-ms").parse::<u64>().unwrap() > 0);
    upstream.open();
    calls.rest().await;
    gateway.balances().await;
}
