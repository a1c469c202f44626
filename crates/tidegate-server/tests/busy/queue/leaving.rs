//! Clients that leave while their requests wait.

use crate::support::{TestGateway, eventually};
use crate::traffic::until;
use crate::upstream::Upstream;
use crate::waiting::{assert_served, one_slot, queue, send, waiting};
use serde_json::Value;
use tokio::task::JoinHandle;

#[tokio::test]
async fn a_client_that_leaves_gives_its_position_to_another() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(&one_slot(2), &[upstream.address]);
    let first = send(&gateway, "/first", "high").await;
    let (leaves, stays) =
        (send(&gateway, "/leaves", "high").await, send(&gateway, "/stays", "high").await);
    leaves.abort();
    eventually("it has left", || waiting(&gateway) == 1).await;
    let comes = send(&gateway, "/comes", "high").await;
    upstream.open();
    assert_served([first, stays, comes]).await;
    assert_eq!(upstream.paths(), ["/first", "/stays", "/comes"]);
    let totals = queue(&gateway).totals;
    assert_eq!((totals.queued, totals.served, totals.left), (3, 2, 1));
    gateway.balances().await;
}

#[tokio::test]
async fn when_the_client_of_the_request_in_the_slot_leaves_the_next_is_served() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(&one_slot(10), &[upstream.address]);
    let first = send(&gateway, "/first", "normal").await;
    let second = send(&gateway, "/second", "normal").await;
    eventually("the first is there", || upstream.active() == 1).await;
    first.abort();
    eventually("the second is there", || upstream.paths().contains(&"/second".to_owned())).await;
    upstream.open();
    assert_served([second]).await;
    gateway.balances().await;
}

#[tokio::test]
async fn a_client_that_has_left_does_not_count_as_waiting() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(&one_slot(10), &[upstream.address]);
    let first = send(&gateway, "/first", "normal").await;
    let mut sent = Vec::new();
    for _ in 0..10 {
        sent.push(send(&gateway, "/waits", "normal").await);
    }
    until(&gateway, "it is slow", |stats| stats["slow_models"] == 1).await;
    sent.iter().for_each(JoinHandle::abort);
    // The upstream hangs on, but nobody waits for it.
    let nobody = |stats: &Value| {
        let queue = &stats["models"][0]["queue"];
        (&queue["normal"], &queue["state"], &queue["left"])
            == (&0.into(), &"HEALTHY".into(), &10.into())
    };
    until(&gateway, "nobody waits", nobody).await;
    until(&gateway, "the alert is over", |stats| stats["slow_models"] == 0).await;
    upstream.open();
    assert_served([first]).await;
}
