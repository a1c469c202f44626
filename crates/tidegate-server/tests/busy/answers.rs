//! What a rejection says.

use crate::support::{Answer, Client, Reserved, TestGateway, eventually};
use crate::traffic::{Flood, addresses, until_known, upstream_toml, without_queue};
use crate::upstream::{Upstream, page};
use crate::waiting::{assert_refused, assert_served, one_slot, send};
use http_body_util::Full;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Two upstreams that are full, and the answer to one more.
async fn refused(settings: &str) -> (Answer, Vec<Upstream>, TestGateway) {
    let upstreams = Upstream::several(2).await;
    let config = format!("[routing]\nactive_requests_threshold = 1\n{settings}");
    let gateway = without_queue(&config, &addresses(&upstreams));
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
    // The SDKs of model providers read this object alone.
    let nested = json!({
        "message": body["message"], "type": body["type"], "param": null, "code": "all_busy",
    });
    assert_eq!(body["error"], nested);
    let expected = [
        "busy_upstreams",
        "code",
        "error",
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
    assert_eq!(answer.header("retry-after-ms"), wait_ms.to_string());
    assert_eq!(answer.header("retry-after"), wait_ms.div_ceil(1000).max(1).to_string());
}

#[tokio::test]
async fn where_requests_may_wait_it_has_the_position_and_once_a_service_time_is_known_the_wait() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(&one_slot(1), &[upstream.address]);
    let refused = async || {
        let body = assert_refused(send(&gateway, "/", "normal").await, "all_busy").await.json();
        assert_eq!(body["queue_position"], 2, "{body}");
        assert_eq!((&body["busy_upstreams"], &body["total_upstreams"]), (&json!(1), &json!(1)));
        assert_eq!(body["error"]["code"], "all_busy");
        body
    };
    let sent = [send(&gateway, "/", "normal").await, send(&gateway, "/", "normal").await];
    let first = refused().await;
    assert!(!keys(&first).contains("estimated_wait_ms"), "{first}");
    upstream.open();
    assert_served(sent).await;
    gateway.balances().await;
    upstream.close();
    let sent = [send(&gateway, "/", "normal").await, send(&gateway, "/", "normal").await];
    // The service time is measured over periods of its own.
    let mut known = refused().await;
    for _ in 0..1_000 {
        if keys(&known).contains("estimated_wait_ms") {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        known = refused().await;
    }
    assert!(known["estimated_wait_ms"].as_u64().is_some_and(|ms| ms > 0), "{known}");
    upstream.open();
    assert_served(sent).await;
    gateway.balances().await;
}

#[tokio::test]
async fn errors_of_every_kind_have_the_nested_object_too() {
    let upstream = Upstream::start().await;
    let gone = Reserved::new();
    let config = format!(
        "[admission]\nglobal_limit = 4\nhigh_limit = 1\nnormal_limit = 1\nlow_limit = 1\n\
         [[model]]\nname = \"none\"\n[[upstream]]\nurl = \"http://{}\"\nmodels = [\"dead\"]\n{}",
        gone.address,
        upstream_toml(&upstream, &["here"])
    );
    let gateway = TestGateway::start(&config, &[]);
    let client = Client::new(gateway.address);
    let ask = move |model: &'static str| async move {
        let request = client.request("GET", "/").header("tidegate-model", model);
        client.send(request.body(Full::default()).unwrap()).await
    };
    let mut answers = vec![ask("none").await, ask("dead").await];
    answers.push(client.get("/busy_threshold?model=typo").await);
    upstream.close();
    let held = tokio::spawn(ask("here"));
    eventually("the slot is taken", || upstream.active() == 1).await;
    answers.push(ask("here").await);
    let reasons = ["no_upstreams", "connect_failed", "unknown_model", "priority_limit"];
    for (answer, reason) in answers.iter().zip(reasons) {
        let body = answer.json();
        assert_eq!((&body["reason"], &body["error"]["code"]), (&json!(reason), &json!(reason)));
        assert_eq!(body["error"]["message"], body["message"], "{reason}");
        assert_eq!(body["error"]["type"], body["type"], "{reason}");
        let field = body.get("field").unwrap_or(&Value::Null);
        assert_eq!(&body["error"]["param"], field, "{reason}");
        assert_eq!(body["code"], answer.status.as_u16(), "{reason}");
    }
    upstream.open();
    assert_eq!(held.await.unwrap().status, 200);
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
        let gateway = without_queue(config, &[upstream.address]);
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
    let gateway = without_queue(config, &[upstream.address]);
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
    let gateway = without_queue("[routing]\nactive_requests_threshold = 0\n", &[upstream.address]);
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
    let gateway = without_queue(&text, &[]);
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
async fn grpc_is_told_of_a_full_queue_in_the_same_way() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(&one_slot(1), &[upstream.address]);
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
