//! What `/busy_threshold` does not follow, and that nothing has changed then.

use crate::support::{Answer, Client, TestGateway, raw};
use crate::traffic::{post, post_json, upstream_toml};
use crate::upstream::Upstream;
use bytes::Bytes;
use http_body_util::Full;
use serde_json::json;
use tidegate_server::config::{Config, LoadSource};
use tidegate_server::gateway::Gateway;

const PATH: &str = "/busy_threshold";

async fn gateway() -> (Upstream, TestGateway) {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start(&upstream_toml(&upstream, &["m"]), &[]);
    post_json(gateway.admin, PATH, &json!({"model": "m", "active_requests_threshold": 9})).await;
    (upstream, gateway)
}

fn assert_problem(answer: &Answer, status: u16, reason: &str, field: Option<&str>) {
    let body = answer.json();
    assert_eq!((answer.status.as_u16(), body["code"].as_u64()), (status, Some(status.into())));
    assert_eq!((body["reason"].as_str(), body["field"].as_str()), (Some(reason), field), "{body}");
    assert!(!body["message"].as_str().unwrap().is_empty());
}

async fn assert_unchanged(gateway: &TestGateway) {
    let all = Client::new(gateway.admin).get(PATH).await.json();
    let expected = json!({
        "model": "m",
        "active_decode_blocks_threshold": null,
        "active_prefill_tokens_threshold": null,
        "active_requests_threshold": 9
    });
    assert_eq!(all, json!({ "thresholds": [expected] }));
}

#[tokio::test]
async fn an_unknown_model_is_404_for_every_method() {
    let (_upstream, gateway) = gateway().await;
    for port in [gateway.address, gateway.admin] {
        let client = Client::new(port);
        let set = json!({"model": "none", "active_decode_blocks_threshold": 0.5});
        let answer = post_json(port, PATH, &set).await;
        assert_problem(&answer, 404, "unknown_model", Some("model"));
        assert!(answer.json()["message"].as_str().unwrap().contains("\"none\""));
        let answer = client.get("/busy_threshold?model=none").await;
        assert_problem(&answer, 404, "unknown_model", Some("model"));
        for (path, body) in [("/busy_threshold?model=none", ""), (PATH, "{\"model\":\"none\"}")] {
            let delete = client.request("DELETE", path).body(Full::from(body)).unwrap();
            assert_problem(&client.send(delete).await, 404, "unknown_model", Some("model"));
        }
    }
    assert_unchanged(&gateway).await;
}

#[tokio::test]
async fn a_wrong_type_is_422_and_out_of_range_is_400_with_the_field() {
    let (_upstream, gateway) = gateway().await;
    let (decode, prefill) = ("active_decode_blocks_threshold", "active_prefill_tokens_threshold");
    let requests = "active_requests_threshold";
    for port in [gateway.address, gateway.admin] {
        for (body, field) in [
            (json!({"model": "m", decode: "0.85"}), decode),
            (json!({"model": "m", decode: [0.85]}), decode),
            (json!({"model": "m", prefill: 10.5}), prefill),
            (json!({"model": "m", prefill: true}), prefill),
            (json!({"model": "m", requests: {}}), requests),
            (json!({"model": 7}), "model"),
            (json!({ decode: 0.85 }), "model"),
            (
                json!({"model": "m", "active_decode_block_threshold": 0.5}),
                "active_decode_block_threshold",
            ),
        ] {
            let answer = post_json(port, PATH, &body).await;
            assert_problem(&answer, 422, "wrong_type", Some(field));
        }
        for (body, field) in [
            (json!({"model": "m", decode: 1.5}), decode),
            (json!({"model": "m", decode: -0.1}), decode),
            (json!({"model": "m", prefill: -1}), prefill),
            (json!({"model": "m", requests: 99_999_999_999_u64}), requests),
            // The first is right and the second is not: neither is followed.
            (json!({"model": "m", decode: 0.5, prefill: -1}), prefill),
        ] {
            let answer = post_json(port, PATH, &body).await;
            assert_problem(&answer, 400, "out_of_range", Some(field));
        }
    }
    assert_unchanged(&gateway).await;
}

#[tokio::test]
async fn what_is_no_request_to_change_is_told_why() {
    let (_upstream, gateway) = gateway().await;
    for port in [gateway.address, gateway.admin] {
        let client = Client::new(port);
        for body in ["", "{", "active_decode_blocks_threshold=0.5"] {
            let answer = client.send(post(client, PATH, body)).await;
            assert_problem(&answer, 400, "not_json", None);
        }
        let answer = client.send(post(client, PATH, "[]")).await;
        assert_problem(&answer, 422, "wrong_type", Some("body"));
        for method in ["PUT", "PATCH", "OPTIONS"] {
            let request = client.request(method, PATH).body(Full::from("{}")).unwrap();
            let answer = client.send(request).await;
            assert_problem(&answer, 405, "unknown_method", None);
            assert_eq!(answer.header("allow"), "GET, HEAD, POST, DELETE");
        }
        let long = format!("{{\"model\":\"{}\"}}", "m".repeat(70_000));
        assert_problem(&client.send(post(client, PATH, long)).await, 413, "too_long", None);
    }
    assert_unchanged(&gateway).await;
}

#[tokio::test]
async fn a_page_of_another_origin_changes_nothing() {
    let (_upstream, gateway) = gateway().await;
    for port in [gateway.address, gateway.admin] {
        let client = Client::new(port);
        let change = r#"{"model":"m","active_requests_threshold":0}"#;
        for origin in ["http://evil.example", "null", "http://127.0.0.1:1"] {
            let request = client.request("POST", PATH).header("origin", origin);
            let answer = client.send(request.body(Full::from(change)).unwrap()).await;
            assert_problem(&answer, 403, "cross_origin", None);
            let request = client.request("DELETE", "/busy_threshold?model=m");
            let request = request.header("origin", origin).body(Full::default()).unwrap();
            assert_problem(&client.send(request).await, 403, "cross_origin", None);
        }
        assert_unchanged(&gateway).await;
        let own = client.request("POST", PATH).header("origin", format!("http://{port}"));
        let same = r#"{"model":"m","active_requests_threshold":9}"#;
        assert_eq!(client.send(own.body(Full::from(same)).unwrap()).await.status, 200);
    }
}

#[tokio::test]
async fn over_http2_a_page_of_its_own_origin_is_not_another() {
    let (_upstream, gateway) = gateway().await;
    for port in [gateway.address, gateway.admin] {
        let client = Client::h2(port);
        let own = client.request("POST", PATH).header("origin", format!("http://{port}"));
        let same = r#"{"model":"m","active_requests_threshold":9}"#;
        assert_eq!(client.send(own.body(Full::from(same)).unwrap()).await.status, 200);
    }
}

#[tokio::test]
async fn what_is_decided_before_the_body_comes_ends_the_connection_and_says_so() {
    let (_upstream, gateway) = gateway().await;
    for port in [gateway.address, gateway.admin] {
        for (line, status) in [
            ("PUT /busy_threshold HTTP/1.1\r\n", "405"),
            ("POST /busy_threshold HTTP/1.1\r\norigin: http://evil.example\r\n", "403"),
            ("GET /busy_threshold HTTP/1.1\r\n", "200"),
        ] {
            let head = format!("{line}host: x\r\ncontent-length: 1000000\r\n\r\n");
            let answer = raw(port, head.as_bytes()).await;
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{line}: {answer}");
            assert!(answer.contains("\r\nconnection: close\r\n"), "{line}: {answer}");
        }
    }
    assert_unchanged(&gateway).await;
}

/// The gateway takes what is not written as loopback for a port that others can reach. This one is loopback all
/// the same.
const EXPOSED: &str = "[::ffff:127.0.0.1]:0";
const TOKEN: &str = "operator-0123456789abcdef";

#[tokio::test]
async fn on_a_port_that_others_can_reach_it_is_read_with_a_token_and_never_changed() {
    let upstream = Upstream::start().await;
    let text = format!(
        "{}[[client]]\nname = \"o\"\ntoken = \"{TOKEN}\"\n",
        upstream_toml(&upstream, &["m"])
    );
    let mut config = Config::from_toml(&text).unwrap_or_else(|errors| panic!("{errors}"));
    config.routing.load_source = LoadSource::Headers;
    config.listen.address = EXPOSED.parse().unwrap();
    config.listen.admin_address = "127.0.0.1:0".parse().unwrap();
    let gateway = Gateway::start(config).unwrap();
    let port = format!("127.0.0.1:{}", gateway.address().port()).parse().unwrap();
    let client = Client::new(port);
    let ask = |method: &str, token: bool| {
        let mut request = client.request(method, PATH);
        if token {
            request = request.header("tidegate-token", TOKEN);
        }
        let body = if method == "GET" { "" } else { r#"{"model":"m"}"# };
        client.send(request.body(Full::<Bytes>::from(body)).unwrap())
    };
    assert_eq!(ask("GET", false).await.status, 401);
    assert_eq!(ask("POST", false).await.status, 401);
    assert_eq!(ask("GET", true).await.status, 200);
    for method in ["POST", "DELETE"] {
        assert_problem(&ask(method, true).await, 403, "read_only_here", None);
    }
    let change = json!({"model": "m", "active_requests_threshold": 1});
    let answer = post_json(gateway.admin_address(), PATH, &change).await;
    assert_eq!(answer.status, 200, "on the admin port it is");
    tokio::task::spawn_blocking(|| gateway.shutdown()).await.unwrap();
}
