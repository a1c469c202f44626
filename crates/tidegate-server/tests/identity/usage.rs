//! A stolen client token can't read another tenant's usage.

use crate::node::{A, B, IDENTITIES, OPERATOR, TestNode, ask};
use crate::support::eventually;
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

const ALL: &str = "from_ns=0&until_ns=9000000000000000000";

/// The tenants of the rows that a token gets.
fn tenants(usage: &Value) -> Vec<&str> {
    let rows = usage["rows"].as_array().unwrap_or_else(|| panic!("{usage}"));
    rows.iter().map(|row| row["tenant"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_client_reads_the_usage_of_its_own_tenants_alone() {
    let config = IDENTITIES.replace("name = \"b\"\n", "name = \"b\"\ntenants = [\"x\", \"y\"]\n");
    let node = TestNode::start(&config);
    let ingest = node.inner().ingest().unwrap();
    let mut lines = TcpStream::connect(ingest.lines_address()).await.unwrap();
    let text = ["a", "x", "y", "z"].map(|it| format!("calls,tenant={it} quantity=1 1000000000\n"));
    lines.write_all(text.concat().as_bytes()).await.unwrap();
    let stored = || ingest.stats().counts.records_stored == 4;
    eventually("all records are stored", stored).await;
    let usage = async |port, token, query: &str| {
        ask(port, "GET", &format!("/v1/usage?{ALL}{query}"), token, "").await
    };
    assert_eq!(tenants(&usage(node.data, Some(A), "").await.json()), ["a"]);
    assert_eq!(tenants(&usage(node.data, Some(B), "&tenant=y").await.json()), ["y"]);
    for (token, query) in [(A, "&tenant=x"), (A, "&tenant=none"), (B, "&tenant=a"), (B, "")] {
        let refused = usage(node.data, Some(token), query).await;
        assert_eq!(
            (refused.status.as_u16(), &refused.json()["reason"]),
            (400, &"wrong_parameter".into())
        );
        assert!(refused.text().contains("tenant"), "{query}: {}", refused.text());
    }
    assert_eq!(usage(node.data, None, "").await.status, 401);
    assert_eq!(usage(node.admin, Some(A), "").await.status, 403);
    for port in [node.data, node.admin] {
        let all = usage(port, Some(OPERATOR), "").await.json();
        assert_eq!(tenants(&all), ["a", "x", "y", "z"]);
    }
}
