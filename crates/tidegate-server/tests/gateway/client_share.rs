//! One client floods, and holds no more than its share; the others are served.

use crate::support::{Answer, Client, TestGateway, Upstream, eventually};
use http_body_util::Full;
use tokio::task::JoinSet;

const NOISY: &str = "noisy-0123456789abcdef";
const QUIET: &str = "quiet-0123456789abcdef";

/// Normal has eight places, of which half are four.
const CONFIG: &str = r#"
[admission]
global_limit = 16
high_limit = 0
normal_limit = 8
low_limit = 8
[[client]]
name = "noisy"
token = "noisy-0123456789abcdef"
share = 0.5
[[client]]
name = "quiet"
token = "quiet-0123456789abcdef"
"#;

async fn send(client: Client, path: &str, token: &str, priority: &str) -> Answer {
    let request = client
        .request("GET", path)
        .header("tidegate-token", token)
        .header("tidegate-priority", priority);
    client.send(request.body(Full::default()).unwrap()).await
}

/// So many requests at once that wait at the upstream, if they come so far.
fn flood(
    client: Client,
    token: &'static str,
    priority: &'static str,
    count: usize,
) -> JoinSet<Answer> {
    let mut flood = JoinSet::new();
    for _ in 0..count {
        flood.spawn(async move { send(client, "/hold", token, priority).await });
    }
    flood
}

/// The next so many answers. Those that wait at the upstream are none of them.
async fn answers(flood: &mut JoinSet<Answer>, count: usize) -> Vec<Answer> {
    let mut answers = Vec::new();
    for _ in 0..count {
        answers.push(flood.join_next().await.unwrap().unwrap());
    }
    answers
}

async fn rejected(gateway: &TestGateway, what: &str, reason: &str) -> u64 {
    let page = Client::new(gateway.admin).get("/metrics").await;
    let series = format!("tidegate_{what}_total{{reason=\"{reason}\"}} ");
    let line = page.text().lines().find_map(|line| line.strip_prefix(&series));
    line.unwrap_or_else(|| panic!("no {series}")).parse().unwrap()
}

#[tokio::test]
async fn a_client_that_floods_holds_its_share_and_another_is_served() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(CONFIG, &[upstream.address]);
    let client = Client::new(gateway.address);
    let mut noisy = flood(client, NOISY, "normal", 50);
    for answer in answers(&mut noisy, 46).await {
        let json = answer.json();
        assert_eq!((answer.status.as_u16(), &json["reason"]), (503, &"client_share".into()));
        assert_eq!((&json["priority"], &json["limit"]), (&"normal".into(), &4.into()));
        assert!(json["message"].as_str().unwrap().contains("this client"), "{json}");
        let seconds: u64 = answer.header("retry-after").parse().unwrap();
        let wait_ms = json["retry_after_ms"].as_u64().unwrap();
        assert_eq!(seconds, wait_ms.div_ceil(1000));
        assert!(wait_ms >= 10, "{wait_ms}");
    }
    eventually("four of it are in flight", || gateway.in_flight() == 4).await;
    // The other half is free for whoever else comes, and anybody without a token has no bound of its own.
    let quiet = flood(client, QUIET, "normal", 3);
    eventually("the others are in flight", || gateway.in_flight() == 7).await;
    assert_eq!(send(client, "/hold", NOISY, "normal").await.json()["reason"], "client_share");
    // Its High and Low count toward the share of the whole: eight of sixteen.
    let mut low = flood(client, NOISY, "low", 10);
    assert!(answers(&mut low, 6).await.iter().all(|answer| answer.status == 503));
    eventually("eight of it are in flight", || gateway.in_flight() == 11).await;
    let high = send(client, "/hold", NOISY, "high").await.json();
    assert_eq!((&high["reason"], &high["limit"]), (&"client_share".into(), &8.into()));
    assert_eq!(rejected(&gateway, "tasks_rejected", "client_share").await, 46 + 1 + 6 + 1);
    assert_eq!(rejected(&gateway, "tasks_rejected", "priority_limit").await, 0);
    upstream.gate.open();
    let served = [noisy.join_all().await, quiet.join_all().await, low.join_all().await];
    for answer in served.iter().flatten() {
        assert_eq!(answer.status, 200, "what was admitted is served");
    }
    gateway.balances().await;
    assert_eq!(send(client, "/", NOISY, "normal").await.status, 200, "its places are free again");
}

#[tokio::test]
async fn the_limits_of_the_gateway_still_bind_and_are_told_as_such() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(CONFIG, &[upstream.address]);
    let client = Client::new(gateway.address);
    let quiet = flood(client, QUIET, "normal", 8);
    eventually("all of Normal is taken", || gateway.in_flight() == 8).await;
    assert_eq!(send(client, "/", NOISY, "normal").await.json()["reason"], "priority_limit");
    // What the gateway refused took nothing of the share.
    upstream.gate.open();
    drop(quiet.join_all().await);
    upstream.gate.close();
    let mut noisy = flood(client, NOISY, "normal", 5);
    assert_eq!(answers(&mut noisy, 1).await[0].json()["reason"], "client_share");
    eventually("four of it are in flight", || gateway.in_flight() == 4).await;
    upstream.gate.open();
}

#[tokio::test]
async fn a_client_that_leaves_gives_its_place_in_the_share_back() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(CONFIG, &[upstream.address]);
    let client = Client::new(gateway.address);
    for _ in 0..3 {
        let mut noisy = flood(client, NOISY, "normal", 4);
        eventually("its share is taken", || gateway.in_flight() == 4).await;
        assert_eq!(send(client, "/", NOISY, "normal").await.json()["reason"], "client_share");
        noisy.shutdown().await;
        gateway.balances().await;
    }
    upstream.gate.open();
    assert_eq!(send(client, "/", NOISY, "normal").await.status, 200);
}

#[tokio::test]
async fn in_a_dry_run_it_is_only_counted() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(&format!("dry_run = true\n{CONFIG}"), &[upstream.address]);
    let client = Client::new(gateway.address);
    let noisy = flood(client, NOISY, "normal", 7);
    eventually("all of them are in flight", || gateway.in_flight() == 7).await;
    assert_eq!(rejected(&gateway, "requests_would_reject", "client_share").await, 3);
    assert_eq!(rejected(&gateway, "tasks_rejected", "client_share").await, 0);
    upstream.gate.open();
    assert!(noisy.join_all().await.iter().all(|answer| answer.status == 200));
    gateway.balances().await;
}

#[tokio::test]
async fn metrics_say_whose_share_is_taken() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(CONFIG, &[upstream.address]);
    let mut noisy = flood(Client::new(gateway.address), NOISY, "normal", 6);
    answers(&mut noisy, 2).await;
    eventually("its share is taken", || gateway.in_flight() == 4).await;
    let page = Client::new(gateway.admin).get("/metrics").await;
    for line in [
        "tidegate_client_in_flight{client=\"noisy\"} 4",
        "tidegate_client_share_refused_total{client=\"noisy\"} 2",
    ] {
        assert!(page.text().lines().any(|found| found == line), "no {line} in {}", page.text());
    }
    assert!(!page.text().contains("client=\"quiet\""), "it has no share");
    upstream.gate.open();
}
