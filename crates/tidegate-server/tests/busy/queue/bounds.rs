//! A full queue refuses the newcomer, or displaces the newest request of a lower priority or of a client with a
//! longer backlog.

use crate::support::TestGateway;
use crate::upstream::Upstream;
use crate::waiting::{assert_refused, assert_served, one_slot, queue, send, send_with, waiting};

#[tokio::test]
async fn with_one_client_and_one_priority_the_newcomer_is_refused() {
    for priority in ["high", "normal", "low"] {
        let upstream = Upstream::closed().await;
        let gateway = TestGateway::start(&one_slot(2), &[upstream.address]);
        let mut sent = Vec::new();
        for name in ["/0", "/1", "/2"] {
            sent.push(send(&gateway, name, priority).await);
        }
        let refused = assert_refused(send(&gateway, "/3", priority).await, "all_busy").await;
        assert_eq!(refused.json()["queue_position"], 3, "{priority}");
        assert!(sent.iter().all(|one| !one.is_finished()), "{priority}");
        let totals = queue(&gateway).totals;
        assert_eq!((totals.refused_full, totals.displaced), (1, 0), "{priority}");
        upstream.open();
        assert_served(sent).await;
        assert_eq!(upstream.paths(), ["/0", "/1", "/2"], "{priority}");
        assert_eq!(gateway.stats().await["tasks"]["rejected"]["all_busy"], 1);
        gateway.balances().await;
    }
}

#[tokio::test]
async fn a_higher_priority_displaces_the_newest_of_the_lowest_and_not_the_other_way_round() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(&one_slot(4), &[upstream.address]);
    let first = send(&gateway, "/first", "low").await;
    let low = [send(&gateway, "/low-1", "low").await, send(&gateway, "/low-2", "low").await];
    let normal =
        [send(&gateway, "/normal-1", "normal").await, send(&gateway, "/normal-2", "normal").await];
    let [low_1, low_2] = low;
    let [normal_1, normal_2] = normal;
    let mut served = vec![first];
    for (name, displaced) in
        [("/high-1", low_2), ("/high-2", low_1), ("/high-3", normal_2), ("/high-4", normal_1)]
    {
        served.push(send(&gateway, name, "high").await);
        assert_refused(displaced, "queue_displaced").await;
        assert_eq!(waiting(&gateway), 4);
    }
    // Only High waits now.
    for priority in ["high", "normal", "low"] {
        assert_refused(send(&gateway, "/late", priority).await, "all_busy").await;
    }
    let totals = queue(&gateway).totals;
    assert_eq!((totals.displaced, totals.refused_full), (4, 3));
    upstream.open();
    assert_served(served).await;
    assert_eq!(upstream.paths(), ["/first", "/high-1", "/high-2", "/high-3", "/high-4"]);
    let rejected = gateway.stats().await["tasks"]["rejected"].clone();
    assert_eq!((&rejected["queue_displaced"], &rejected["all_busy"]), (&4.into(), &3.into()));
    gateway.balances().await;
}

#[tokio::test]
async fn a_client_displaces_the_newest_of_one_with_a_longer_backlog_until_both_are_equal() {
    let upstream = Upstream::closed().await;
    let (long, short) = ("long-0123456789abcdef", "short-0123456789abcdef");
    let clients = format!(
        "[[client]]\nname = \"long\"\ntoken = \"{long}\"\n\
         [[client]]\nname = \"short\"\ntoken = \"{short}\"\n"
    );
    let config = format!("{}{clients}", one_slot(4));
    let gateway = TestGateway::start(&config, &[upstream.address]);
    let send = async |path, token| send_with(&gateway, path, &[("tidegate-token", token)]).await;
    let first = send("/first", long).await;
    let (long_1, long_2) = (send("/long-1", long).await, send("/long-2", long).await);
    let (long_3, long_4) = (send("/long-3", long).await, send("/long-4", long).await);
    let short_1 = send("/short-1", short).await;
    assert_refused(long_4, "queue_displaced").await;
    let short_2 = send("/short-2", short).await;
    assert_refused(long_3, "queue_displaced").await;
    for token in [short, long] {
        assert_refused(send("/late", token).await, "all_busy").await;
    }
    upstream.open();
    assert_served([first, long_1, long_2, short_1, short_2]).await;
    let mut paths = upstream.paths();
    paths.sort();
    assert_eq!(paths, ["/first", "/long-1", "/long-2", "/short-1", "/short-2"]);
    let totals = queue(&gateway).totals;
    assert_eq!((totals.displaced, totals.refused_full, totals.served), (2, 2, 4));
    gateway.balances().await;
}

#[tokio::test]
async fn positions_for_a_burst_come_on_top() {
    let upstream = Upstream::closed().await;
    let config = "[routing]\nlimit = 1\n[queue]\nsize = 2\noverflow_size = 3\n\
                  wait_max_ms = 3600000\n";
    let gateway = TestGateway::start(config, &[upstream.address]);
    let mut sent = Vec::new();
    for _ in 0..6 {
        sent.push(send(&gateway, "/", "normal").await);
    }
    assert_eq!(waiting(&gateway), 5);
    let refused = assert_refused(send(&gateway, "/", "normal").await, "all_busy").await;
    assert_eq!(refused.json()["queue_position"], 6);
    upstream.open();
    assert_served(sent).await;
    gateway.balances().await;
}
