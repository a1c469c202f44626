//! A request waits for as long as it may, and is refused at once if its turn would come later.

use crate::support::{Client, TestGateway, eventually};
use crate::upstream::Upstream;
use crate::waiting::{
    assert_refused, assert_served, one_slot, queue, send, send_request, send_with, waiting,
};
use http_body_util::Full;
use std::time::{Duration, Instant};

#[tokio::test]
async fn a_request_that_waited_in_vain_is_refused() {
    let upstream = Upstream::closed().await;
    let config = "[routing]\nlimit = 1\n[queue]\nwait_max_ms = 50\n";
    let gateway = TestGateway::start(config, &[upstream.address]);
    let first = send(&gateway, "/first", "normal").await;
    for _ in 0..3 {
        let start = Instant::now();
        assert_refused(send(&gateway, "/late", "normal").await, "queue_timeout").await;
        assert!(start.elapsed() >= Duration::from_millis(50));
    }
    assert_eq!(gateway.stats().await["tasks"]["rejected"]["queue_timeout"], 3);
    assert_eq!((queue(&gateway).totals.expired, waiting(&gateway)), (3, 0));
    upstream.open();
    assert_served([first]).await;
    assert_served([send(&gateway, "/next", "normal").await]).await;
    assert_eq!(upstream.paths(), ["/first", "/next"]);
    gateway.balances().await;
}

#[tokio::test]
async fn a_deadline_of_the_client_shortens_the_wait() {
    for (name, value) in [("tidegate-timeout-ms", "50"), ("grpc-timeout", "50m")] {
        let upstream = Upstream::closed().await;
        let gateway = TestGateway::start(&one_slot(10), &[upstream.address]);
        let first = send(&gateway, "/first", "normal").await;
        let start = Instant::now();
        let hurried = send_with(&gateway, "/hurried", &[(name, value)]).await;
        let patient = send(&gateway, "/patient", "normal").await;
        assert_refused(hurried, "queue_timeout").await;
        assert!(start.elapsed() >= Duration::from_millis(50), "{name}");
        assert!(!patient.is_finished(), "{name}");
        upstream.open();
        assert_served([first, patient]).await;
        assert_eq!(upstream.paths(), ["/first", "/patient"], "{name}");
        gateway.balances().await;
    }
}

#[tokio::test]
async fn a_call_of_grpc_that_waited_in_vain_is_told_so_in_trailers() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(&one_slot(10), &[upstream.address]);
    let first = send(&gateway, "/first", "normal").await;
    let client = Client::h2(gateway.address);
    let call = client
        .request("POST", "/x.Y/Z")
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("grpc-timeout", "20000u");
    let call = send_request(&gateway, client, call.body(Full::default()).unwrap()).await;
    let refused = call.await.unwrap();
    assert_eq!((refused.status.as_u16(), refused.header("grpc-status")), (200, "8"));
    assert!(refused.header("grpc-retry-pushback-ms").parse::<u64>().unwrap() > 0);
    assert_eq!(queue(&gateway).totals.expired, 1);
    upstream.open();
    assert_served([first]).await;
    gateway.balances().await;
}

#[tokio::test]
async fn a_deadline_of_the_client_does_not_lengthen_the_wait() {
    let upstream = Upstream::closed().await;
    let config = "[routing]\nlimit = 1\n[queue]\nwait_max_ms = 50\n";
    let gateway = TestGateway::start(config, &[upstream.address]);
    let first = send(&gateway, "/first", "normal").await;
    for header in [("tidegate-timeout-ms", "3600000"), ("grpc-timeout", "1H")] {
        assert_refused(send_with(&gateway, "/", &[header]).await, "queue_timeout").await;
    }
    // What can't be read is no deadline.
    for header in [("tidegate-timeout-ms", "soon"), ("grpc-timeout", "-1S")] {
        assert_refused(send_with(&gateway, "/", &[header]).await, "queue_timeout").await;
    }
    upstream.open();
    assert_served([first]).await;
    gateway.balances().await;
}

#[tokio::test]
async fn a_deadline_that_has_passed_allows_no_wait() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(&one_slot(10), &[upstream.address]);
    let now = [("tidegate-timeout-ms", "0")];
    let first = send_with(&gateway, "/first", &now).await;
    eventually("it needs no wait", || upstream.active() == 1).await;
    let refused = assert_refused(send_with(&gateway, "/late", &now).await, "all_busy").await;
    assert_eq!(refused.json()["queue_position"], 1);
    let totals = queue(&gateway).totals;
    assert_eq!((totals.queued, totals.refused_wait), (0, 1));
    upstream.open();
    assert_served([first]).await;
    gateway.balances().await;
}

/// A gateway whose upstream takes at least 200 ms for a request, as the gateway knows, with one request in its
/// slot and one that waits.
async fn slow_service(upstream: &Upstream) -> TestGateway {
    let gateway = TestGateway::start(&one_slot(100), &[upstream.address]);
    let known = send(&gateway, "/known", "normal").await;
    // Only how long a service takes at least matters.
    tokio::time::sleep(Duration::from_millis(200)).await;
    upstream.let_one_through();
    assert_served([known]).await;
    gateway.balances().await;
    gateway
}

#[tokio::test]
async fn a_request_that_would_wait_beyond_its_deadline_is_refused_at_once() {
    let upstream = Upstream::closed().await;
    let gateway = slow_service(&upstream).await;
    let sent = [send(&gateway, "/slot", "normal").await, send(&gateway, "/next", "normal").await];
    let service_us = queue(&gateway).service_us.expect("one has ended");
    assert!(service_us >= 200_000, "{service_us}");
    let header = ("tidegate-timeout-ms", "300");
    let refused = assert_refused(send_with(&gateway, "/", &[header]).await, "all_busy").await;
    let body = refused.json();
    // Behind one that waits, in front of one slot: two services.
    assert_eq!(body["queue_position"], 2);
    let told_us = u128::from(body["estimated_wait_ms"].as_u64().unwrap()) * 1000;
    assert!(told_us.abs_diff(2 * service_us) <= 2_000, "{told_us}, and a service {service_us}");
    assert_eq!(queue(&gateway).totals.refused_wait, 1);
    let patient = send_with(&gateway, "/patient", &[("tidegate-timeout-ms", "3600000")]).await;
    upstream.open();
    assert_served(sent).await;
    assert_served([patient]).await;
    gateway.balances().await;
}

#[tokio::test]
async fn a_flood_waits_for_a_few_services_and_no_longer() {
    let upstream = Upstream::closed().await;
    let gateway = slow_service(&upstream).await;
    let mut sent = vec![send(&gateway, "/slot", "normal").await];
    let refused = loop {
        let one = send(&gateway, "/", "normal").await;
        if one.is_finished() {
            break assert_refused(one, "all_busy").await;
        }
        sent.push(one);
        assert!(sent.len() < 20, "the queue became a standing wait");
    };
    let body = refused.json();
    let position = body["queue_position"].as_u64().unwrap();
    assert_eq!(position, sent.len() as u64);
    assert!((4..=5).contains(&position), "about four services: {position}");
    assert!(body["estimated_wait_ms"].as_u64().unwrap() >= 200 * position);
    assert_eq!(queue(&gateway).totals.refused_full, 0);
    // Normal does not count for High.
    sent.push(send(&gateway, "/urgent", "high").await);
    assert_eq!(queue(&gateway).high, 1);
    upstream.open();
    assert_served(sent).await;
    assert_eq!(upstream.paths()[2], "/urgent");
    gateway.balances().await;
}

#[tokio::test]
async fn a_response_tells_how_long_its_request_waited() {
    let upstream = Upstream::closed().await;
    let gateway = TestGateway::start(&one_slot(10), &[upstream.address]);
    let first = send(&gateway, "/first", "normal").await;
    let start = Instant::now();
    let second = send(&gateway, "/second", "normal").await;
    let queued_after = start.elapsed();
    // The wait is at least this long, and not longer than the request took.
    tokio::time::sleep(Duration::from_millis(100)).await;
    upstream.open();
    let first = first.await.unwrap();
    assert!(!first.headers.contains_key("tidegate-queue-ms"), "it did not wait");
    let second = second.await.unwrap();
    let took = start.elapsed();
    assert_eq!(second.status, 200);
    let told = Duration::from_millis(second.header("tidegate-queue-ms").parse().unwrap());
    let least = Duration::from_millis(100);
    assert!(told >= least && told <= took, "{told:?}, of {took:?}, queued after {queued_after:?}");
    assert!(!upstream.last().headers.contains_key("tidegate-queue-ms"));
    gateway.balances().await;
}
