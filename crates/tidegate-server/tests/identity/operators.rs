//! A stolen client token can't operate: each endpoint of the control plane is tried on both ports.

use crate::node::{A, B, IDENTITIES, OPERATOR, TestNode, ask};

const CHANGE: &str = r#"{"model":"*","active_requests_threshold":1}"#;

#[tokio::test]
async fn a_clients_token_can_not_operate_on_either_port() {
    let node = TestNode::start(IDENTITIES);
    let paths = [
        ("GET", "/v1/stats", ""),
        ("GET", "/busy_threshold", ""),
        ("POST", "/busy_threshold", CHANGE),
        ("DELETE", "/busy_threshold?model=*", ""),
    ];
    let thresholds = || ask(node.admin, "GET", "/busy_threshold", Some(OPERATOR), "");
    let before = thresholds().await.json();
    for port in [node.data, node.admin] {
        for (method, path, body) in paths {
            for token in [A, B] {
                let stolen = ask(port, method, path, Some(token), body).await;
                assert_eq!(stolen.status, 403, "{method} {path}: {}", stolen.text());
                assert_eq!(stolen.json()["reason"], "operator_only");
            }
            let without = ask(port, method, path, None, body).await;
            assert_eq!(without.status, 401, "{method} {path}: {}", without.text());
            let guessed = ask(port, method, path, Some("tg_guess-0123456789"), body).await;
            assert_eq!(guessed.status, 401, "{method} {path}: {}", guessed.text());
        }
    }
    assert_eq!(thresholds().await.json(), before, "nothing was changed");
    for (method, path, body) in paths {
        let operated = ask(node.admin, method, path, Some(OPERATOR), body).await;
        assert_eq!(operated.status, 200, "{method} {path}: {}", operated.text());
    }
}

#[tokio::test]
async fn the_admin_port_is_the_operators_alone() {
    let node = TestNode::start(IDENTITIES);
    let task = r#"{"runtime":"sh","code":"true"}"#;
    for (method, path, body) in [
        ("GET", "/v1/tasks", ""),
        ("POST", "/v1/tasks", task),
        ("GET", "/v1/executors", ""),
        ("GET", "/v1/decisions", ""),
        ("GET", "/v1/usage", ""),
    ] {
        for (token, status) in [(Some(A), 403), (None, 401)] {
            let refused = ask(node.admin, method, path, token, body).await;
            assert_eq!(refused.status, status, "{method} {path}: {}", refused.text());
        }
    }
    let listed = ask(node.admin, "GET", "/v1/tasks", Some(OPERATOR), "").await;
    assert_eq!(listed.json()["tasks"].as_array().unwrap().len(), 0, "nothing was submitted");
}

#[tokio::test]
async fn health_and_local_scrapes_need_no_token() {
    let node = TestNode::start(IDENTITIES);
    assert_eq!(ask(node.admin, "GET", "/health/live", None, "").await.status, 200);
    assert_ne!(ask(node.admin, "GET", "/health/ready", None, "").await.status, 401);
    let metrics = ask(node.admin, "GET", "/metrics", None, "").await;
    assert_eq!(metrics.status, 200);
    for secret in [A, OPERATOR] {
        assert!(!metrics.text().contains(secret));
    }
}

#[tokio::test]
async fn without_operators_the_loopback_admin_port_is_open() {
    let clients = IDENTITIES.split("[[operator]]").next().unwrap();
    let node = TestNode::start(clients);
    for path in ["/v1/stats", "/busy_threshold", "/v1/tasks"] {
        assert_eq!(ask(node.admin, "GET", path, None, "").await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn a_clients_token_can_not_submit_above_its_priority() {
    let node = TestNode::start(IDENTITIES);
    let high = r#"{"runtime":"sh","code":"true","priority":"high"}"#;
    let capped = ask(node.data, "POST", "/v1/tasks", Some(A), high).await;
    assert_eq!((capped.status.as_u16(), &capped.json()["priority"]), (201, &"normal".into()));
    let critical = high.replace("high", "critical");
    assert_eq!(ask(node.data, "POST", "/v1/tasks", Some(A), &critical).await.status, 422);
    let operator = ask(node.data, "POST", "/v1/tasks", Some(OPERATOR), high).await;
    assert_eq!(operator.json()["priority"], "high");
}
