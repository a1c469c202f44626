//! `/busy_threshold`, to the letter of the document that has it.

use crate::support::{Answer, Client, TestGateway, eventually};
use crate::traffic::{Flood, active, count, post, post_json, upstream_toml, without_queue};
use crate::upstream::Upstream;
use http_body_util::Full;
use serde_json::{Value, json};
use std::net::SocketAddr;

const PATH: &str = "/busy_threshold";
const QWEN: &str = "Qwen/Qwen3-0.6B";

async fn gateway_of(upstream: &Upstream) -> TestGateway {
    without_queue(&upstream_toml(upstream, &[QWEN]), &[])
}

async fn delete(address: SocketAddr, path: &str, body: &str) -> Answer {
    let client = Client::new(address);
    client.send(client.request("DELETE", path).body(Full::from(body.to_owned())).unwrap()).await
}

fn set(threshold: &str, value: &Value) -> Value {
    json!({ "model": QWEN, threshold: value })
}

#[tokio::test]
async fn it_is_set_and_read_as_the_document_has_it_on_both_ports() {
    let upstream = Upstream::start().await;
    for admin in [false, true] {
        let gateway = gateway_of(&upstream).await;
        let port = if admin { gateway.admin } else { gateway.address };
        let body = json!({
            "model": "Qwen/Qwen3-0.6B",
            "active_decode_blocks_threshold": 0.85,
            "active_prefill_tokens_threshold": 10000
        });
        let answer = post_json(port, PATH, &body).await;
        assert_eq!((answer.status.as_u16(), answer.json()), (200, body.clone()));
        assert_eq!(answer.header("content-type"), "application/json");
        let all = Client::new(port).get(PATH).await;
        assert_eq!((all.status.as_u16(), all.json()), (200, json!({ "thresholds": [body] })));
        let one = Client::new(port).get("/busy_threshold?model=Qwen%2FQwen3-0.6B").await;
        assert_eq!((one.status.as_u16(), one.json()), (200, body));
        let head = Client::new(port);
        let head = head.send(head.request("HEAD", PATH).body(Full::default()).unwrap()).await;
        assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
    }
}

#[tokio::test]
async fn before_anything_is_set_the_checks_are_null() {
    let upstream = Upstream::start().await;
    let gateway = gateway_of(&upstream).await;
    let off = json!({
        "model": QWEN,
        "active_decode_blocks_threshold": null,
        "active_prefill_tokens_threshold": null
    });
    assert_eq!(Client::new(gateway.address).get(PATH).await.json(), json!({"thresholds": [off]}));
}

#[tokio::test]
async fn null_clears_one_and_delete_clears_all() {
    let upstream = Upstream::start().await;
    let gateway = gateway_of(&upstream).await;
    let (decode, prefill) = ("active_decode_blocks_threshold", "active_prefill_tokens_threshold");
    let requests = "active_requests_threshold";
    for port in [gateway.address, gateway.admin] {
        post_json(port, PATH, &set(decode, &json!(0.85))).await;
        post_json(port, PATH, &set(requests, &json!(7))).await;
        let both = post_json(port, PATH, &set(prefill, &json!(10000))).await.json();
        let expected = json!({"model": QWEN, decode: 0.85, prefill: 10000, requests: 7});
        assert_eq!(both, expected, "what is not said stays");
        let cleared = post_json(port, PATH, &set(decode, &Value::Null)).await.json();
        assert_eq!((&cleared[decode], &cleared[prefill]), (&Value::Null, &json!(10000)));
        for (path, body) in [
            ("/busy_threshold?model=Qwen%2FQwen3-0.6B", String::new()),
            (PATH, json!({ "model": QWEN }).to_string()),
        ] {
            post_json(port, PATH, &set(prefill, &json!(5))).await;
            let cleared = delete(port, path, &body).await;
            let off = json!({"model": QWEN, decode: null, prefill: null});
            assert_eq!((cleared.status.as_u16(), cleared.json()), (200, off.clone()), "{path}");
            let now = Client::new(port).get(PATH).await.json();
            assert_eq!(now, json!({ "thresholds": [off] }));
        }
    }
}

#[tokio::test]
async fn a_change_takes_effect_at_once_on_what_is_under_load() {
    let upstream = Upstream::closed().await;
    let gateway = gateway_of(&upstream).await;
    let client = Client::new(gateway.address);
    let field = "active_requests_threshold";
    let held = Flood::of_gets(client, 20);
    eventually("twenty are there", || upstream.active() == 20).await;

    // Lowered under load: nothing is cut, and nothing more comes in until there is room.
    post_json(gateway.address, PATH, &set(field, &json!(10))).await;
    let refused = Flood::of_gets(client, 50).rest().await;
    assert_eq!(count(&refused, 503), 50);
    assert_eq!(refused[0].json()["threshold"], "active_requests");
    assert_eq!(upstream.active(), 20);

    // Raised: exactly the difference comes in.
    post_json(gateway.admin, PATH, &set(field, &json!(26))).await;
    let mut more = Flood::of_gets(client, 50);
    assert_eq!(count(&more.answers(44).await, 503), 44);
    eventually("six more are there", || upstream.active() == 26).await;

    // Cleared: everything does.
    post_json(gateway.address, PATH, &set(field, &Value::Null)).await;
    let rest = Flood::of_gets(client, 50);
    eventually("all of them are there", || upstream.active() == 76).await;
    upstream.open();
    for flood in [held, more, rest] {
        assert!(flood.rest().await.iter().all(|answer| answer.status == 200));
    }
    gateway.balances().await;
}

#[tokio::test]
async fn a_threshold_that_flips_under_load_never_latches_and_never_overshoots_its_highest() {
    let upstreams = [Upstream::start().await];
    let gateway = gateway_of(&upstreams[0]).await;
    let client = Client::new(gateway.address);
    let address = gateway.admin;
    let flips = tokio::spawn(async move {
        for round in 0..60 {
            let most = [0, 3, 8][round % 3];
            post_json(address, PATH, &set("active_requests_threshold", &json!(most))).await;
        }
    });
    post_json(address, PATH, &set("active_requests_threshold", &json!(8))).await;
    while !flips.is_finished() {
        let answers = Flood::of_gets(client, 20).rest().await;
        assert_eq!(count(&answers, 200) + count(&answers, 503), 20);
    }
    flips.await.unwrap();
    assert!(upstreams[0].peak() <= 8, "{}", upstreams[0].peak());
    gateway.balances().await;
    post_json(address, PATH, &set("active_requests_threshold", &json!(8))).await;
    upstreams[0].close();
    let mut flood = Flood::of_gets(client, 20);
    assert_eq!(count(&flood.answers(12).await, 503), 12);
    eventually("all places are used", || active(&upstreams) == 8).await;
    upstreams[0].open();
    assert_eq!(count(&flood.rest().await, 200), 8);
}

#[tokio::test]
async fn while_models_are_not_known_there_is_one_entry_for_all() {
    let upstream = Upstream::closed().await;
    let gateway = without_queue("", &[upstream.address]);
    let all = Client::new(gateway.address).get(PATH).await.json();
    assert_eq!(all["thresholds"][0]["model"], "*");
    let change = json!({"model": "*", "active_requests_threshold": 1});
    assert_eq!(post_json(gateway.address, PATH, &change).await.status, 200);
    let client = Client::new(gateway.address);
    let held = Flood::of_gets(client, 1);
    eventually("it is there", || upstream.active() == 1).await;
    assert_eq!(client.send(post(client, "/", "{}")).await.status, 503);
    upstream.open();
    held.rest().await;
}

#[tokio::test]
async fn the_presets_are_the_document_s_and_single_settings_come_before_them() {
    let upstream = Upstream::start().await;
    for (settings, decode, prefill) in [
        ("preset = \"latency\"\n", json!(0.7), json!(5000)),
        ("preset = \"throughput\"\n", json!(0.95), json!(20000)),
        ("preset = \"off\"\n", Value::Null, Value::Null),
        ("", Value::Null, Value::Null),
        ("preset = \"latency\"\nactive_decode_blocks_threshold = 0.75\n", json!(0.75), json!(5000)),
    ] {
        let for_all = format!("[routing]\n{settings}{}", upstream_toml(&upstream, &[QWEN]));
        let of_model = format!(
            "[[model]]\nname = \"{QWEN}\"\n{settings}{}",
            upstream_toml(&upstream, &[QWEN])
        );
        for config in [for_all, of_model] {
            let gateway = TestGateway::start(&config, &[]);
            let told = Client::new(gateway.address).get(PATH).await.json();
            let told = &told["thresholds"][0];
            assert_eq!(told["active_decode_blocks_threshold"], decode, "{config}");
            assert_eq!(told["active_prefill_tokens_threshold"], prefill, "{config}");
        }
    }
}
