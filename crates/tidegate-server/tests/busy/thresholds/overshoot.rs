//! Of many at once, exactly as many get through as there are places.

use crate::support::{Client, TestGateway, eventually};
use crate::traffic::{Flood, active, addresses, count, until_known, without_queue};
use crate::upstream::{Upstream, page};
use http_body_util::Full;
use tokio::task::JoinSet;

const PICKS: [&str; 5] = ["power_of_two", "round_robin", "random", "least_loaded", "direct"];

/// Metrics are read once, before anything is sent.
const ONCE: &str =
    "load_source = \"scrape\"\nscrape_interval_ms = 600000\nreport_ttl_ms = 3600000\n";

/// Two hundred on 32 places, and again once these are free: each time 32 are admitted, and the others refused
/// while those are held.
async fn admits_exactly_32(gateway: &TestGateway, upstreams: &[Upstream], what: &str) {
    for round in 0..2 {
        upstreams.iter().for_each(Upstream::close);
        let mut flood = Flood::of_gets(Client::new(gateway.address), 200);
        let refused = flood.answers(168).await;
        assert_eq!(count(&refused, 503), 168, "{what}, round {round}");
        eventually("the admitted are there", || active(upstreams) == 32).await;
        let peaks: Vec<_> = upstreams.iter().map(Upstream::peak).collect();
        assert_eq!(peaks, vec![32 / upstreams.len(); upstreams.len()], "{what}, round {round}");
        upstreams.iter().for_each(Upstream::open);
        assert_eq!(count(&flood.rest().await, 200), 32, "{what}, round {round}");
        gateway.balances().await;
    }
}

#[tokio::test]
async fn two_hundred_at_once_on_32_places_admit_exactly_32_for_every_pick() {
    for pick in PICKS {
        let upstreams = Upstream::several(4).await;
        let config = format!("[routing]\npick = \"{pick}\"\nactive_requests_threshold = 8\n");
        let gateway = without_queue(&config, &addresses(&upstreams));
        admits_exactly_32(&gateway, &upstreams, pick).await;
    }
}

#[tokio::test]
async fn with_two_ranks_an_upstream_they_admit_exactly_32_for_every_pick() {
    for pick in PICKS {
        let upstreams = Upstream::several(4).await;
        upstreams.iter().for_each(|upstream| upstream.tell(&page(&[(0, 100, 0, 0); 2])));
        let config = format!("[routing]\npick = \"{pick}\"\n{ONCE}active_requests_threshold = 4\n");
        let gateway = without_queue(&config, &addresses(&upstreams));
        until_known(&gateway).await;
        admits_exactly_32(&gateway, &upstreams, pick).await;
    }
}

#[tokio::test]
async fn by_the_kv_blocks_of_two_ranks_they_admit_exactly_32_for_every_pick() {
    for pick in PICKS {
        let upstreams = Upstream::several(4).await;
        // Half of eight blocks, twice, at four upstreams; each request is taken to need one.
        upstreams.iter().for_each(|upstream| upstream.tell(&page(&[(0, 8, 0, 0); 2])));
        let config =
            format!("[routing]\npick = \"{pick}\"\n{ONCE}active_decode_blocks_threshold = 0.5\n");
        let gateway = without_queue(&config, &addresses(&upstreams));
        until_known(&gateway).await;
        admits_exactly_32(&gateway, &upstreams, pick).await;
    }
}

#[tokio::test]
async fn by_the_tokens_in_prefill_they_admit_exactly_32_for_every_pick() {
    for pick in PICKS {
        let upstreams = Upstream::several(4).await;
        let config = format!("[routing]\npick = \"{pick}\"\nactive_prefill_tokens_threshold = 8\n");
        let gateway = without_queue(&config, &addresses(&upstreams));
        admits_exactly_32(&gateway, &upstreams, pick).await;
    }
}

/// What a report has and was sent a moment ago counts twice until the next one: that may refuse early, and never
/// lets more in.
#[tokio::test]
async fn while_true_reports_come_in_never_more_than_32_are_admitted_and_in_the_end_32_are() {
    let mut upstreams = Vec::new();
    for upstream in Upstream::several(4).await {
        upstreams.push(upstream.honest());
    }
    let config = "[routing]\nload_source = \"scrape\"\nscrape_interval_ms = 10\n\
                  active_requests_threshold = 8\n";
    let gateway = without_queue(config, &addresses(&upstreams));
    until_known(&gateway).await;
    let client = Client::new(gateway.address);
    let floods: Vec<_> = (0..4).map(|_| Flood::of_gets(client, 50)).collect();
    let mut more = Vec::new();
    let start = std::time::Instant::now();
    while active(&upstreams) < 32 {
        assert!(start.elapsed().as_secs() < 30, "only {} came in", active(&upstreams));
        more.push(Flood::of_gets(client, 4));
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    upstreams.iter().for_each(Upstream::open);
    let mut served = 0;
    for flood in floods.into_iter().chain(more) {
        served += count(&flood.rest().await, 200);
    }
    assert!(served >= 32);
    assert!(upstreams.iter().all(|upstream| upstream.peak() == 8));
    gateway.balances().await;
}

#[tokio::test]
async fn two_hundred_streams_of_one_connection_are_admitted_like_connections() {
    let upstreams = Upstream::several(4).await;
    let gateway =
        without_queue("[routing]\nactive_requests_threshold = 8\n", &addresses(&upstreams));
    let tcp = tokio::net::TcpStream::connect(gateway.address).await.unwrap();
    let io = hyper_util::rt::TokioIo::new(tcp);
    let executor = hyper_util::rt::TokioExecutor::new();
    let (sender, connection) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
    tokio::spawn(connection);
    let client = Client::h2(gateway.address);
    let mut streams = JoinSet::new();
    for _ in 0..200 {
        let request = client.request("GET", "/").body(Full::<bytes::Bytes>::default()).unwrap();
        let mut sender = sender.clone();
        streams.spawn(async move { sender.send_request(request).await.unwrap().status() });
    }
    let mut refused = 0;
    while refused < 168 {
        let status = tokio::time::timeout(std::time::Duration::from_secs(30), streams.join_next());
        assert_eq!(status.await.expect("it is refused").unwrap().unwrap(), 503);
        refused += 1;
    }
    eventually("the admitted are there", || active(&upstreams) == 32).await;
    upstreams.iter().for_each(Upstream::open);
    while let Some(status) = streams.join_next().await {
        assert_eq!(status.unwrap(), 200);
    }
    assert!(upstreams.iter().all(|upstream| upstream.peak() == 8));
    gateway.balances().await;
}

#[tokio::test]
async fn clients_that_leave_free_their_places() {
    let upstreams = Upstream::several(2).await;
    let gateway =
        without_queue("[routing]\nactive_requests_threshold = 4\n", &addresses(&upstreams));
    for _ in 0..3 {
        let flood = Flood::of_gets(Client::new(gateway.address), 8);
        eventually("all places are taken", || active(&upstreams) == 8).await;
        assert_eq!(Client::new(gateway.address).get("/").await.status, 503);
        flood.leave().await;
        gateway.balances().await;
        eventually("the upstreams know it too", || active(&upstreams) == 0).await;
    }
    assert!(upstreams.iter().all(|upstream| upstream.peak() <= 4));
}
