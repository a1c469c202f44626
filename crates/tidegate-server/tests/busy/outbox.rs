//! Requests that wait for an upstream that takes only so many at once.

use crate::support::{Answer, Client, TestGateway, eventually};
use crate::traffic::{Flood, count, until};
use crate::upstream::Upstream;
use http_body_util::Full;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

/// One at a time, and so many that wait.
fn one_at_a_time(waiting: usize) -> String {
    format!("[outbox]\nconcurrency = 1\nqueue_size = {waiting}\noverflow_size = 0\n")
}

/// How many wait, and how many ever did.
fn waiting(gateway: &TestGateway) -> (usize, u64) {
    let queue = gateway.inner().fleet().stats()[0].outbox.queue;
    (queue.primary_size + queue.overflow_size, queue.total_enqueued)
}

/// Sends one and returns when it waits, or is at the upstream.
async fn send(
    gateway: &TestGateway,
    path: &'static str,
    priority: &'static str,
) -> JoinHandle<Answer> {
    let before = waiting(gateway).1;
    let client = Client::new(gateway.address);
    let sent = tokio::spawn(async move { client.get_as(path, priority).await });
    eventually("it was taken or refused", || waiting(gateway).1 > before || sent.is_finished())
        .await;
    sent
}

fn paths(upstream: &Upstream) -> Vec<String> {
    upstream.came().into_iter().map(|one| one.path).collect()
}

async fn assert_refused(answer: JoinHandle<Answer>, reason: &str) {
    let answer = answer.await.unwrap();
    let body = answer.json();
    assert_eq!((answer.status.as_u16(), body["reason"].as_str()), (503, Some(reason)));
    assert_eq!(body["type"], "service_unavailable");
    assert!(body["retry_after_ms"].as_u64().unwrap() > 0);
    assert!(answer.header("retry-after").parse::<u64>().unwrap() >= 1);
}

#[tokio::test]
async fn first_come_first_served() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(&one_at_a_time(100), &[upstream.address]);
    let names = ["/0", "/1", "/2", "/3", "/4", "/5", "/6", "/7", "/8", "/9"];
    let mut sent = Vec::new();
    for name in names {
        sent.push(send(&gateway, name, "normal").await);
    }
    assert_eq!(waiting(&gateway), (9, 10));
    eventually("one of them is there", || upstream.active() == 1).await;
    upstream.open();
    for one in sent {
        assert_eq!(one.await.unwrap().status, 200);
    }
    assert_eq!(paths(&upstream), names);
    assert_eq!(upstream.peak(), 1);
    gateway.balances().await;
}

#[tokio::test]
async fn never_more_than_so_many_are_sent_at_once() {
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("[outbox]\nconcurrency = 3\n", &[upstream.address]);
    let answers = Flood::of_gets(Client::new(gateway.address), 200).rest().await;
    assert_eq!(count(&answers, 200), 200);
    assert!(upstream.peak() <= 3, "{}", upstream.peak());
    gateway.balances().await;
}

#[tokio::test]
async fn at_the_bound_one_is_refused_for_each_that_comes_and_the_newest_stay() {
    for (priority, stays) in
        [("high", ["/1", "/2"]), ("normal", ["/2", "/3"]), ("low", ["/2", "/3"])]
    {
        let upstream = Upstream::closed().await;
        let gateway = TestGateway::start(&one_at_a_time(2), &[upstream.address]);
        let mut sent = Vec::new();
        for name in ["/0", "/1", "/2", "/3"] {
            sent.push((name, send(&gateway, name, priority).await));
        }
        eventually("one was refused", || sent.iter().any(|(_, one)| one.is_finished())).await;
        let at = sent.iter().position(|(_, one)| one.is_finished()).unwrap();
        let (refused, answer) = sent.remove(at);
        assert!(!stays.contains(&refused), "{priority}: {refused}");
        assert_refused(answer, "outbox_full").await;
        upstream.open();
        for (_, one) in sent {
            assert_eq!(one.await.unwrap().status, 200);
        }
        assert_eq!(paths(&upstream), ["/0", stays[0], stays[1]], "{priority}");
        assert_eq!(gateway.stats().await["tasks"]["rejected"]["outbox_full"], 1);
        gateway.balances().await;
    }
}

#[tokio::test]
async fn a_high_takes_the_place_of_a_low_and_not_the_other_way_round() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(&one_at_a_time(3), &[upstream.address]);
    let first = send(&gateway, "/first", "normal").await;
    let (low, normal) =
        (send(&gateway, "/low", "low").await, send(&gateway, "/normal", "normal").await);
    let old = send(&gateway, "/old", "high").await;
    let new = send(&gateway, "/new", "high").await;
    assert_refused(low, "outbox_full").await;
    let newer = send(&gateway, "/newer", "high").await;
    assert_refused(normal, "outbox_full").await;
    // Nobody is below it now.
    assert_refused(send(&gateway, "/newest", "high").await, "outbox_full").await;
    assert_refused(send(&gateway, "/another", "low").await, "outbox_full").await;
    upstream.open();
    for one in [first, old, new, newer] {
        assert_eq!(one.await.unwrap().status, 200);
    }
    assert_eq!(paths(&upstream), ["/first", "/old", "/new", "/newer"]);
    gateway.balances().await;
}

#[tokio::test]
async fn whoever_waits_too_long_is_told_so() {
    let upstream = Upstream::closed().await;
    let config = format!("{}wait_max_ms = 50\n", one_at_a_time(10));
    let gateway = TestGateway::start(&config, &[upstream.address]);
    let first = send(&gateway, "/first", "normal").await;
    for _ in 0..3 {
        assert_refused(send(&gateway, "/late", "normal").await, "outbox_wait").await;
    }
    assert_eq!(gateway.stats().await["tasks"]["rejected"]["outbox_wait"], 3);
    upstream.open();
    assert_eq!(first.await.unwrap().status, 200);
    assert_eq!(send(&gateway, "/next", "normal").await.await.unwrap().status, 200);
    assert_eq!(paths(&upstream), ["/first", "/next"]);
    gateway.balances().await;
}

#[tokio::test]
async fn a_client_that_leaves_gives_its_place_in_the_line_to_another() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(&one_at_a_time(2), &[upstream.address]);
    let first = send(&gateway, "/first", "high").await;
    let (leaves, stays) =
        (send(&gateway, "/leaves", "high").await, send(&gateway, "/stays", "high").await);
    leaves.abort();
    eventually("it has left", || gateway.in_flight() == 2).await;
    let comes = send(&gateway, "/comes", "high").await;
    upstream.open();
    for one in [first, stays, comes] {
        assert_eq!(one.await.unwrap().status, 200);
    }
    assert_eq!(paths(&upstream), ["/first", "/stays", "/comes"]);
    gateway.balances().await;
}

#[tokio::test]
async fn when_the_one_that_is_sent_leaves_the_next_one_s_turn_comes() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(&one_at_a_time(10), &[upstream.address]);
    let first = send(&gateway, "/first", "normal").await;
    let second = send(&gateway, "/second", "normal").await;
    eventually("the first is there", || upstream.active() == 1).await;
    first.abort();
    eventually("the second is there", || paths(&upstream).contains(&"/second".to_owned())).await;
    upstream.open();
    assert_eq!(second.await.unwrap().status, 200);
    gateway.balances().await;
}

#[tokio::test]
async fn who_has_left_does_not_count_as_waiting() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(&one_at_a_time(10), &[upstream.address]);
    let first = send(&gateway, "/first", "normal").await;
    let mut waiting = Vec::new();
    for _ in 0..10 {
        waiting.push(send(&gateway, "/waits", "normal").await);
    }
    until(&gateway, "it is slow", |stats| stats["slow_upstreams"] == 1).await;
    waiting.iter().for_each(JoinHandle::abort);
    // The upstream hangs on, but nobody waits for it.
    let nobody = |stats: &Value| {
        let outbox = &stats["upstreams"][0]["outbox"];
        outbox["primary_size"] == 0 && outbox["state"] == "HEALTHY"
    };
    until(&gateway, "nobody waits", nobody).await;
    until(&gateway, "the alert is over", |stats| stats["slow_upstreams"] == 0).await;
    upstream.open();
    assert_eq!(first.await.unwrap().status, 200);
}

#[tokio::test]
async fn states_sizes_totals_and_the_alert_are_seen() {
    let upstream = Upstream::closed().await;
    let config = "[outbox]\nconcurrency = 1\nqueue_size = 10\noverflow_size = 5\n";
    let gateway = TestGateway::start(config, &[upstream.address]);
    let mut sent = vec![send(&gateway, "/", "normal").await];
    let mut seen = Vec::new();
    for size in 1..=15_u64 {
        sent.push(send(&gateway, "/", "normal").await);
        let outbox = gateway.stats().await["upstreams"][0]["outbox"].clone();
        assert_eq!(outbox["primary_size"].as_u64().unwrap(), size.min(10));
        assert_eq!(outbox["overflow_size"].as_u64().unwrap(), size.saturating_sub(10));
        assert_eq!(outbox["total_enqueued"], size + 1);
        seen.push(outbox["state"].as_str().unwrap().to_owned());
    }
    seen.dedup();
    assert_eq!(seen, ["HEALTHY", "THROTTLED", "BATCHING", "OVERFLOW", "SATURATED"]);
    until(&gateway, "the alert holds", |stats| stats["slow_upstreams"] == 1).await;
    let name = upstream.address.to_string();
    let metrics = Client::new(gateway.admin).get("/metrics").await;
    for line in [
        format!("tidegate_outbox_state{{upstream=\"{name}\",state=\"saturated\"}} 1\n"),
        format!("tidegate_outbox_state{{upstream=\"{name}\",state=\"healthy\"}} 0\n"),
        format!("tidegate_outbox_backpressure_level{{upstream=\"{name}\"}} 3\n"),
        format!("tidegate_outbox_size{{upstream=\"{name}\",part=\"primary\"}} 10\n"),
        format!("tidegate_outbox_size{{upstream=\"{name}\",part=\"overflow\"}} 5\n"),
        format!("tidegate_outbox_enqueued_total{{upstream=\"{name}\"}} 16\n"),
        "tidegate_slow_upstreams 1\n".to_owned(),
        "tidegate_alert{alert=\"destination_slow\"} 1\n".to_owned(),
        "tidegate_alerts_raised_total{alert=\"destination_slow\"} 1\n".to_owned(),
    ] {
        assert!(metrics.text().contains(&line), "{line}{}", metrics.text());
    }
    upstream.open();
    for one in sent {
        assert_eq!(one.await.unwrap().status, 200);
    }
    let stats = until(&gateway, "the alert is over", |stats| stats["slow_upstreams"] == 0).await;
    let outbox = &stats["upstreams"][0]["outbox"];
    assert_eq!(
        (&outbox["state"], &outbox["backpressure_level"]),
        (&json!("HEALTHY"), &json!("NONE"))
    );
    assert_eq!((&outbox["total_sent"], &outbox["total_dropped"]), (&json!(16), &json!(0)));
    let metrics = Client::new(gateway.admin).get("/metrics").await;
    assert!(metrics.text().contains("tidegate_alert{alert=\"destination_slow\"} 0\n"));
}

#[tokio::test]
async fn who_finds_one_outbox_full_waits_at_another() {
    let upstreams = Upstream::several(2).await;
    let config = one_at_a_time(2);
    let gateway = TestGateway::start(&config, &crate::traffic::addresses(&upstreams));
    let client = Client::new(gateway.address);
    let request = || {
        let request = client.request("GET", "/").header("tidegate-priority", "high");
        request.body(Full::default()).unwrap()
    };
    // Two that are sent and four that wait fill both.
    let mut flood = Flood::new(client, 16, request);
    let refused = flood.answers(10).await;
    assert!(refused.iter().all(|answer| answer.json()["reason"] == "outbox_full"));
    upstreams.iter().for_each(Upstream::open);
    assert_eq!(count(&flood.rest().await, 200), 6);
    gateway.balances().await;
}
