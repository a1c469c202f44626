//! A request is bound to an upstream when that has a free slot, and to another one when it fails.

use crate::support::{Client, TestGateway, eventually};
use crate::traffic::{Flood, active, addresses, count, get, post};
use crate::upstream::Upstream;
use crate::waiting::{assert_served, one_slot, send, waiting};

#[tokio::test]
async fn no_request_waits_for_a_slow_upstream_while_another_is_free() {
    let upstreams = Upstream::several(2).await;
    let gateway = TestGateway::start(&one_slot(100), &addresses(&upstreams));
    let client = Client::new(gateway.address);
    let mut first = Flood::of_gets(client, 2);
    eventually("both slots are taken", || upstreams.iter().all(|one| one.active() == 1)).await;
    let flood = Flood::of_gets(client, 20);
    eventually("the others wait", || waiting(&gateway) == 20).await;
    let [fast, slow] = &upstreams[..] else { panic!("two upstreams") };
    fast.open();
    assert_eq!(count(&first.answers(1).await, 200), 1);
    assert_eq!(count(&flood.rest().await, 200), 20);
    for _ in 0..20 {
        assert_served([send(&gateway, "/", "normal").await]).await;
    }
    assert_eq!((fast.came().len(), slow.came().len()), (41, 1));
    slow.open();
    assert_eq!(count(&first.rest().await, 200), 1);
    gateway.balances().await;
}

#[tokio::test]
async fn each_slot_that_becomes_free_serves_the_next_request() {
    let upstreams = Upstream::several(3).await;
    let gateway = TestGateway::start(&one_slot(100), &addresses(&upstreams));
    let client = Client::new(gateway.address);
    let mut flood = Flood::of_gets(client, 3);
    eventually("all slots are taken", || active(&upstreams) == 3).await;
    flood.send(client, 6, || get(client, "/work"));
    eventually("the others wait", || waiting(&gateway) == 6).await;
    for (came, left) in [(2, [5, 4, 3]), (3, [2, 1, 0])] {
        for (upstream, left) in upstreams.iter().zip(left) {
            upstream.let_one_through();
            assert_eq!(count(&flood.answers(1).await, 200), 1);
            eventually("it has the next", || upstream.came().len() == came).await;
            assert_eq!(waiting(&gateway), left);
        }
    }
    upstreams.iter().for_each(Upstream::open);
    assert_eq!(count(&flood.rest().await, 200), 3);
    assert!(upstreams.iter().all(|upstream| upstream.peak() == 1));
    gateway.balances().await;
}

/// Requests that were not sent yet go to the other upstream; only the request that may have begun can be lost, and
/// only if it may not be repeated.
#[tokio::test]
async fn when_an_upstream_dies_the_requests_that_wait_go_to_another() {
    for (method, lost) in [("POST", 1), ("GET", 0)] {
        let upstreams = Upstream::several(2).await;
        let gateway = TestGateway::start(&one_slot(100), &addresses(&upstreams));
        let client = Client::new(gateway.address);
        let request = || match method {
            "GET" => get(client, "/work"),
            _ => post(client, "/work", "body"),
        };
        let mut flood = Flood::new(client, 2, request);
        eventually("both slots are taken", || upstreams.iter().all(|one| one.active() == 1)).await;
        flood.send(client, 20, request);
        eventually("the others wait", || waiting(&gateway) == 20).await;
        let [dies, lives] = &upstreams[..] else { panic!("two upstreams") };
        dies.vanish();
        let is_down = || gateway.inner().fleet().stats().iter().any(|upstream| !upstream.up);
        eventually("it is known to be gone", is_down).await;
        lives.open();
        let answers = flood.rest().await;
        let told: Vec<_> = answers.iter().filter(|one| one.status != 200).collect();
        assert_eq!(count(&answers, 200), 22 - lost, "{method}: {told:?}");
        assert_eq!(count(&answers, 502), lost, "{method}: {told:?}");
        assert_eq!(lives.came().len(), 22 - lost, "{method}");
        gateway.balances().await;
    }
}
