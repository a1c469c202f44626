//! A stolen client token can't see another client's tasks, nor touch them: every path is tried.

use crate::node::{A, B, IDENTITIES, OPERATOR, TestNode, ask};
use crate::support::Client;
use http_body_util::Full;
use serde_json::Value;

const TASK: &str = r#"{"id":"secret","runtime":"sh","code":"true","env":{"PASSWORD":"hunter2"}}"#;

async fn listed(node: &TestNode, token: Option<&str>, query: &str) -> Vec<String> {
    let list = ask(node.data, "GET", &format!("/v1/tasks{query}"), token, "").await;
    assert_eq!(list.status, 200, "{}", list.text());
    let list = list.json();
    let ids = list["tasks"].as_array().unwrap().iter();
    ids.map(|task| task["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn another_clients_task_is_not_there_on_any_path() {
    let node = TestNode::start(IDENTITIES);
    let submitted = ask(node.data, "POST", "/v1/tasks", Some(A), TASK).await;
    assert_eq!((submitted.status.as_u16(), &submitted.json()["client"]), (201, &"a".into()));
    let paths = [
        ("GET", "/v1/tasks/secret"),
        ("GET", "/v1/tasks/secret/output"),
        ("GET", "/v1/tasks/secret/events"),
        ("POST", "/v1/tasks/secret/cancel"),
        ("DELETE", "/v1/tasks/secret"),
    ];
    for (method, path) in paths {
        for token in [Some(B), None] {
            let other = ask(node.data, method, path, token, "").await;
            assert_eq!(other.status, 404, "{method} {path} as {token:?}: {}", other.text());
            // The same as for a task that does not exist.
            let missing =
                ask(node.data, method, &path.replace("secret", "absent"), token, "").await;
            assert_eq!(other.text().replace("secret", "absent"), missing.text());
        }
    }
    let own = ask(node.data, "GET", "/v1/tasks/secret", Some(A), "").await;
    for (told, who) in [(&submitted, "the submission"), (&own, "its client")] {
        assert_eq!(told.json()["env"], serde_json::json!(["PASSWORD"]), "{who}");
        assert!(!told.text().contains("hunter2"), "{who}: {}", told.text());
    }
    let operators = ask(node.admin, "GET", "/v1/tasks", Some(OPERATOR), "").await;
    assert!(!operators.text().contains("hunter2"), "{}", operators.text());
    assert_eq!((own.status.as_u16(), &own.json()["cancel_requested"]), (200, &Value::Bool(false)));
    assert_eq!(ask(node.data, "GET", "/v1/tasks/secret/output", Some(A), "").await.status, 200);
}

#[tokio::test]
async fn lists_have_the_own_tasks_and_an_operator_sees_all() {
    let node = TestNode::start(IDENTITIES);
    let submit = async |id: &str, token| {
        let body = format!(r#"{{"id":"{id}","runtime":"sh","code":"true"}}"#);
        let answer = ask(node.data, "POST", "/v1/tasks", token, &body).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
    };
    for number in 0..3 {
        submit(&format!("a{number}"), Some(A)).await;
        submit(&format!("b{number}"), Some(B)).await;
    }
    submit("nobodys", None).await;
    submit("operators", Some(OPERATOR)).await;
    assert_eq!(listed(&node, Some(A), "").await, ["a2", "a1", "a0"]);
    assert_eq!(listed(&node, Some(B), "?limit=2").await, ["b2", "b1"]);
    assert_eq!(listed(&node, None, "").await, ["nobodys"]);
    assert_eq!(listed(&node, Some(OPERATOR), "").await.len(), 8);
    // A position of an operator's page opens nothing.
    let page = ask(node.data, "GET", "/v1/tasks?limit=5", Some(OPERATOR), "").await.json();
    let after = format!("?after={}", page["next"].as_str().unwrap());
    assert!(listed(&node, Some(A), &after).await.iter().all(|id| id.starts_with('a')));
    for id in ["a0", "b0", "nobodys", "operators"] {
        let path = format!("/v1/tasks/{id}");
        assert_eq!(ask(node.data, "GET", &path, Some(OPERATOR), "").await.status, 200, "{id}");
        assert_eq!(ask(node.admin, "GET", &path, Some(OPERATOR), "").await.status, 200, "{id}");
    }
    let executors = ask(node.data, "GET", "/v1/executors", Some(A), "").await.json();
    assert_eq!(executors["tasks"], serde_json::json!({}), "not how many tasks others have");
    assert_eq!(executors["executors"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn the_same_task_or_key_of_another_client_is_another_task() {
    let node = TestNode::start(IDENTITIES);
    let keyed = async |token: &str, body: &str| {
        let client = Client::new(node.data);
        let request = client
            .request("POST", "/v1/tasks")
            .header("idempotency-key", "nightly")
            .header("authorization", format!("Bearer {token}"));
        client.send(request.body(Full::from(body.to_owned())).unwrap()).await
    };
    let body = r#"{"runtime":"sh","code":"true"}"#;
    let (a, b, again) = (keyed(A, body).await, keyed(B, body).await, keyed(A, body).await);
    assert_eq!((a.status.as_u16(), b.status.as_u16(), again.status.as_u16()), (201, 201, 200));
    assert_eq!(a.json()["id"], again.json()["id"]);
    assert_ne!(a.json()["id"], b.json()["id"]);
    // An equal task under the same id would be answered with the first one.
    assert_eq!(ask(node.data, "POST", "/v1/tasks", Some(A), TASK).await.status, 201);
    assert_eq!(ask(node.data, "POST", "/v1/tasks", Some(A), TASK).await.status, 200);
    let other = ask(node.data, "POST", "/v1/tasks", Some(B), TASK).await;
    assert_eq!((other.status.as_u16(), &other.json()["reason"]), (409, &"id_in_use".into()));
    assert!(!other.text().contains("hunter2"), "{}", other.text());
}

#[tokio::test]
async fn without_tokens_everyone_sees_every_task() {
    let node = TestNode::start("");
    assert_eq!(ask(node.data, "POST", "/v1/tasks", None, TASK).await.status, 201);
    assert_eq!(listed(&node, None, "").await, ["secret"]);
    assert_eq!(ask(node.admin, "GET", "/v1/tasks/secret", None, "").await.status, 200);
}
