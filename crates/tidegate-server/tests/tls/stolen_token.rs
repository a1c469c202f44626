//! A stolen client token over TLS: it opens the data port as its client, and nothing else.

use crate::authority::Authority;
use crate::client::Client;
use crate::node::{CLIENT, IDENTITIES, OPERATOR, TestNode, eventually};
use tokio::io::AsyncWriteExt as _;

const CHANGE: &str = r#"{"model":"*","active_requests_threshold":1}"#;
const ALL: &str = "from_ns=0&until_ns=9000000000000000000";

#[tokio::test]
async fn a_stolen_client_token_operates_nothing() {
    let authority = Authority::new();
    let node = TestNode::start(&(authority.issue("server").toml() + IDENTITIES));
    let client = Client::trusting(&authority);
    let thresholds = async || {
        client.ask(node.admin, ("GET", "/busy_threshold"), Some(OPERATOR), "").await.json()
    };
    let before = thresholds().await;
    for request in [
        ("GET", "/v1/stats"),
        ("GET", "/v1/tasks"),
        ("GET", "/v1/executors"),
        ("GET", "/v1/usage"),
        ("GET", "/v1/decisions"),
        ("POST", "/busy_threshold"),
        ("POST", "/v1/tasks"),
    ] {
        let body = if request.1 == "/busy_threshold" { CHANGE } else { "" };
        let stolen = client.ask(node.admin, request, Some(CLIENT), body).await;
        assert_eq!(stolen.status, 403, "{request:?}: {}", stolen.body);
        let none = client.ask(node.admin, request, None, body).await;
        assert_eq!(none.status, 401, "{request:?}: {}", none.body);
    }
    let changed = client.ask(node.data, ("POST", "/busy_threshold"), Some(CLIENT), CHANGE).await;
    assert_eq!(changed.status, 403, "{}", changed.body);
    assert_eq!(thresholds().await, before);
}

#[tokio::test]
async fn a_stolen_client_token_submits_no_critical_work_and_nothing_above_its_priority() {
    let authority = Authority::new();
    let node = TestNode::start(&(authority.issue("server").toml() + IDENTITIES));
    let client = Client::trusting(&authority);
    let submit = async |priority: &str| {
        let task = format!(r#"{{"runtime":"sh","code":"true","priority":"{priority}"}}"#);
        client.ask(node.data, ("POST", "/v1/tasks"), Some(CLIENT), &task).await
    };
    assert_eq!(submit("critical").await.status, 422);
    let capped = submit("high").await;
    assert_eq!((capped.status, &capped.json()["priority"]), (201, &"normal".into()));
}

#[tokio::test]
async fn a_stolen_client_token_reads_the_usage_of_its_client_alone() {
    let authority = Authority::new();
    let node = TestNode::start(&(authority.issue("server").toml() + IDENTITIES));
    let client = Client::trusting(&authority);
    // By an operator of the machine: senders show tokens of their own.
    let mut lines = client.connect(node.lines).await.unwrap();
    let text = ["a", "b"].map(|it| format!("calls,tenant={it} quantity=1 1000000000\n"));
    lines.write_all(text.concat().as_bytes()).await.unwrap();
    lines.flush().await.unwrap();
    eventually("both lines are stored", async || node.records_stored() == 2).await;
    let usage = async |query: &str| {
        let path = format!("/v1/usage?{ALL}{query}");
        client.ask(node.data, ("GET", &path), Some(CLIENT), "").await
    };
    let own = usage("").await.json();
    let rows = own["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0]["tenant"]), (1, &"a".into()), "{own}");
    assert_eq!(usage("&tenant=b").await.status, 400);
}
