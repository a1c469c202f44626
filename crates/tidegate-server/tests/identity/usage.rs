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

/// Clients and records of the rows that a token gets.
fn clients(usage: &Value) -> Vec<(&str, u64)> {
    let rows = usage["rows"].as_array().unwrap_or_else(|| panic!("{usage}"));
    rows.iter()
        .map(|row| (row["client"].as_str().unwrap_or("others"), row["records"].as_u64().unwrap()))
        .collect()
}

#[tokio::test]
async fn usage_is_told_by_the_client_that_delivered_it() {
    let config = IDENTITIES.replace("name = \"b\"\n", "name = \"b\"\ntenants = [\"a\", \"b\"]\n");
    let node = TestNode::start(&config);
    let ingest = node.inner().ingest().unwrap();
    for (token, tenants) in [(Some(A), &["a"][..]), (Some(B), &["a", "b"]), (None, &["a"])] {
        let mut lines = TcpStream::connect(ingest.lines_address()).await.unwrap();
        let mut text = token.map(|token| format!("auth {token}\n")).unwrap_or_default();
        for tenant in tenants {
            text += &format!("calls,tenant={tenant} quantity=1 1000000000\n");
        }
        lines.write_all(text.as_bytes()).await.unwrap();
    }
    eventually("all is stored", || ingest.stats().counts.records_stored == 4).await;
    let usage = async |token, query: &str| {
        ask(node.data, "GET", &format!("/v1/usage?{ALL}{query}"), Some(token), "").await.json()
    };
    let all = usage(OPERATOR, "&by=client").await;
    assert_eq!(clients(&all), [("", 1), ("a", 1), ("b", 2)]);
    assert_eq!(tenants(&usage(OPERATOR, "&client=b").await), ["a", "b"]);
    assert_eq!(tenants(&usage(OPERATOR, "&client=").await), ["a"]);
    // A client reads of its own tenants alone, and no name of another that delivers for them.
    let own = usage(A, "&by=client").await;
    assert_eq!(clients(&own), [("a", 1), ("others", 2)]);
    assert!(own["next"].is_null() && !own.to_string().contains("\"b\""), "{own}");
    assert_eq!(clients(&usage(A, "&by=client&limit=1").await), [("a", 1), ("others", 2)]);
    assert_eq!(clients(&usage(B, "&by=client&tenant=b").await), [("b", 1)]);
    assert_eq!(tenants(&usage(A, "&client=a").await), ["a"]);
    let after = "&after=%5Bnull%2Cnull%2C%22a%22%2C%22EUR%22%5D";
    for (query, parameter) in [
        ("&client=b".to_owned(), "client"),
        ("&client=nobody".to_owned(), "client"),
        ("&client=".to_owned(), "client"),
        (format!("&by=client{after}"), "after"),
    ] {
        let refused = usage(A, &query).await;
        assert_eq!(refused["reason"], "wrong_parameter", "{refused}");
        assert!(refused["message"].as_str().unwrap().starts_with(parameter), "{refused}");
    }
    let page = usage(OPERATOR, "&by=client&limit=1").await;
    let next = page["next"].as_str().unwrap().replace('"', "%22");
    let page = usage(OPERATOR, &format!("&by=client&limit=1&after={next}")).await;
    assert_eq!(clients(&page), [("a", 1)]);
}
