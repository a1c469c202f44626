//! A destination that hangs stands in nobody's way.

use crate::support::{Client, TestGateway, eventually};
use crate::traffic::{CHAT, Flood, chat, count, post, post_json, until, upstream_toml};
use crate::upstream::Upstream;
use std::net::TcpListener;

const LIMITS: &str = "[admission]\nglobal_limit = 40\nhigh_limit = 20\nnormal_limit = 20\n\
                      low_limit = 10\n";

async fn hanging_and_well(config: &str) -> (Upstream, Upstream, TestGateway) {
    let (hanging, well) = (Upstream::closed().await, Upstream::start().await);
    let config =
        format!("{config}\n{}{}", upstream_toml(&hanging, &["a"]), upstream_toml(&well, &["b"]));
    let gateway = TestGateway::start(&config, &[]);
    (hanging, well, gateway)
}

#[tokio::test]
async fn a_hanging_upstream_that_is_flooded_leaves_the_other_all_its_requests() {
    let (hanging, well, gateway) = hanging_and_well(LIMITS).await;
    let client = Client::new(gateway.address);
    // Three times what the gateway admits.
    let mut flood = Flood::new(client, 60, || post(client, CHAT, chat("a").to_string()));
    let refused = flood.answers(50).await;
    let reason = |answer: &crate::support::Answer| answer.json()["reason"].clone();
    assert!(refused.iter().all(|answer| answer.status == 503));
    assert!(refused.iter().any(|answer| reason(answer) == "upstream_share"));
    eventually("it holds its share", || hanging.active() == 10).await;
    // And it goes on being flooded.
    let again = Flood::new(client, 30, || post(client, CHAT, chat("a").to_string()));
    for _ in 0..100 {
        assert_eq!(post_json(gateway.address, CHAT, &chat("b")).await.status, 200);
    }
    assert_eq!(count(&again.rest().await, 503), 30);
    assert_eq!((hanging.came().len(), well.came().len()), (10, 100));
    hanging.open();
    assert_eq!(count(&flood.rest().await, 200), 10);
    gateway.balances().await;
}

#[tokio::test]
async fn without_a_share_it_would_take_everything() {
    let config = format!("{LIMITS}[routing]\nupstream_share = 1.0\n");
    let (hanging, _well, gateway) = hanging_and_well(&config).await;
    let client = Client::new(gateway.address);
    let mut flood = Flood::new(client, 60, || post(client, CHAT, chat("a").to_string()));
    assert_eq!(count(&flood.answers(40).await, 503), 40);
    eventually("it holds all", || hanging.active() == 20).await;
    let refused = post_json(gateway.address, CHAT, &chat("b")).await;
    assert_eq!(
        (refused.status.as_u16(), refused.json()["reason"].as_str()),
        (503, Some("priority_limit"))
    );
    hanging.open();
    assert_eq!(count(&flood.rest().await, 200), 20);
}

#[tokio::test]
async fn the_queue_of_the_hanging_one_does_not_hold_the_other_up() {
    let config = format!("{LIMITS}[routing]\nlimit = 2\n[queue]\nwait_max_ms = 3600000\n");
    let (hanging, well, gateway) = hanging_and_well(&config).await;
    let client = Client::new(gateway.address);
    let mut flood = Flood::new(client, 30, || post(client, CHAT, chat("a").to_string()));
    // Half of the smallest limit, which is 10, may wait.
    assert_eq!(count(&flood.answers(23).await, 503), 23);
    let all = |stats: &serde_json::Value| stats["models"][0]["queue"]["normal"] == 5;
    until(&gateway, "five wait", all).await;
    for _ in 0..50 {
        assert_eq!(post_json(gateway.address, CHAT, &chat("b")).await.status, 200);
    }
    assert_eq!((hanging.peak(), well.came().len()), (2, 50));
    let stats = until(&gateway, "one is slow", |stats| stats["slow_models"] == 1).await;
    assert_eq!(stats["models"][1]["queue"]["state"], "HEALTHY");
    hanging.open();
    assert_eq!(count(&flood.rest().await, 200), 7);
    gateway.balances().await;
}

#[tokio::test]
async fn one_that_accepts_and_never_answers_is_like_one_that_hangs() {
    // Connections stand in its backlog, and nobody ever takes them.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let well = Upstream::start().await;
    let config = format!(
        "{LIMITS}[[upstream]]\nurl = \"http://{}\"\nmodels = [\"a\"]\n{}",
        mute.local_addr().unwrap(),
        upstream_toml(&well, &["b"])
    );
    let gateway = TestGateway::start(&config, &[]);
    let client = Client::new(gateway.address);
    let mut flood = Flood::new(client, 30, || post(client, CHAT, chat("a").to_string()));
    assert_eq!(count(&flood.answers(20).await, 503), 20);
    for _ in 0..50 {
        assert_eq!(post_json(gateway.address, CHAT, &chat("b")).await.status, 200);
    }
    flood.leave().await;
    gateway.balances().await;
}
