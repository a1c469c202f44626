//! Requests are served by priority, then in the order of their arrival, and never more at once than the limit.

use crate::support::{Client, TestGateway, eventually};
use crate::traffic::{Flood, active, addresses, count};
use crate::upstream::Upstream;
use crate::waiting::{assert_served, one_slot, queue, send, waiting};

#[tokio::test]
async fn requests_of_a_client_are_served_in_the_order_of_their_arrival() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(&one_slot(100), &[upstream.address]);
    let names = ["/0", "/1", "/2", "/3", "/4", "/5", "/6", "/7", "/8", "/9"];
    let mut sent = Vec::new();
    for name in names {
        sent.push(send(&gateway, name, "normal").await);
    }
    eventually("one of them is there", || upstream.active() == 1).await;
    assert_eq!((waiting(&gateway), queue(&gateway).totals.queued), (9, 9));
    upstream.open();
    assert_served(sent).await;
    assert_eq!(upstream.paths(), names);
    assert_eq!(upstream.peak(), 1);
    assert_eq!(queue(&gateway).totals.served, 9);
    gateway.balances().await;
}

const MIXED: [(&str, &str); 9] = [
    ("/low-1", "low"),
    ("/normal-1", "normal"),
    ("/high-1", "high"),
    ("/low-2", "low"),
    ("/high-2", "high"),
    ("/normal-2", "normal"),
    ("/normal-3", "normal"),
    ("/high-3", "high"),
    ("/low-3", "low"),
];

/// The order in which mixed priorities are served after a first request.
async fn order_of_mixed(settings: &str) -> Vec<String> {
    let upstream = Upstream::closed().await;
    let config = format!("{}{settings}", one_slot(100));
    let gateway = TestGateway::start(&config, &[upstream.address]);
    let mut sent = vec![send(&gateway, "/first", "low").await];
    for (name, priority) in MIXED {
        sent.push(send(&gateway, name, priority).await);
    }
    assert_eq!(waiting(&gateway), MIXED.len());
    upstream.open();
    assert_served(sent).await;
    gateway.balances().await;
    upstream.paths()
}

#[tokio::test]
async fn high_is_served_before_normal_and_normal_before_low() {
    let expected = [
        "/first",
        "/high-1",
        "/high-2",
        "/high-3",
        "/normal-1",
        "/normal-2",
        "/normal-3",
        "/low-1",
        "/low-2",
        "/low-3",
    ];
    assert_eq!(order_of_mixed("").await, expected);
}

#[tokio::test]
async fn a_starvation_guard_serves_one_of_so_many_from_a_lower_priority() {
    // Of three, one is of the lower priority that has waited longest.
    let expected = [
        "/first",
        "/high-1",
        "/high-2",
        "/low-1",
        "/high-3",
        "/normal-1",
        "/low-2",
        "/normal-2",
        "/normal-3",
        "/low-3",
    ];
    assert_eq!(order_of_mixed("starvation_guard = 3\n").await, expected);
}

#[tokio::test]
async fn never_more_than_the_limit_are_sent_at_once() {
    let upstream = Upstream::closed().await;
    let config = "[routing]\nlimit = 3\n[queue]\nwait_max_ms = 3600000\n";
    let gateway = TestGateway::start(config, &[upstream.address]);
    let client = Client::new(gateway.address);
    let first = Flood::of_gets(client, 3);
    eventually("all slots are taken", || upstream.active() == 3).await;
    let flood = Flood::of_gets(client, 197);
    eventually("all others wait", || waiting(&gateway) == 197).await;
    upstream.open();
    assert_eq!(count(&first.rest().await, 200) + count(&flood.rest().await, 200), 200);
    assert_eq!(upstream.peak(), 3);
    gateway.balances().await;
}

#[tokio::test]
async fn an_upstream_can_have_a_limit_of_its_own() {
    let upstreams = Upstream::several(3).await;
    let mut config = "[routing]\nlimit = 2\n[queue]\nwait_max_ms = 3600000\n".to_owned();
    for (upstream, limit) in upstreams.iter().zip(["", "limit = 1\n", "limit = 5\n"]) {
        config.push_str(&format!("[[upstream]]\nurl = \"http://{}\"\n{limit}", upstream.address));
    }
    let gateway = TestGateway::start(&config, &[]);
    let client = Client::new(gateway.address);
    let first = Flood::of_gets(client, 8);
    eventually("all slots are taken", || active(&upstreams) == 8).await;
    let flood = Flood::of_gets(client, 32);
    eventually("all others wait", || waiting(&gateway) == 32).await;
    upstreams.iter().for_each(Upstream::open);
    assert_eq!(count(&first.rest().await, 200) + count(&flood.rest().await, 200), 40);
    let peaks: Vec<_> = upstreams.iter().map(Upstream::peak).collect();
    assert_eq!(peaks, [2, 1, 5]);
    gateway.balances().await;
}

#[tokio::test]
async fn without_a_limit_nothing_waits() {
    let upstreams = Upstream::several(2).await;
    let mut config = "[routing]\nlimit = 1\n".to_owned();
    config.push_str(&format!(
        "[[upstream]]\nurl = \"http://{}\"\nlimit = \"off\"\n",
        upstreams[0].address
    ));
    for (config, addresses) in [
        (config.as_str(), Vec::new()),
        ("[routing]\nlimit = \"off\"\n", addresses(&upstreams[1..])),
    ] {
        let gateway = TestGateway::start(config, &addresses);
        let flood = Flood::of_gets(Client::new(gateway.address), 50);
        eventually("all are there", || active(&upstreams) == 50).await;
        upstreams.iter().for_each(Upstream::open);
        assert_eq!(count(&flood.rest().await, 200), 50);
        assert_eq!(queue(&gateway).totals.queued, 0);
        gateway.balances().await;
        upstreams.iter().for_each(Upstream::close);
    }
}
