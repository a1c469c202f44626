//! Low leaves room for the others, at upstreams as at the gateway.

use crate::support::{Client, TestGateway, eventually};
use crate::traffic::{Flood, addresses, count, until_known};
use crate::upstream::{Upstream, page};
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use serde_json::Value;

fn request(client: Client, priority: &str) -> Request<Full<Bytes>> {
    let request = client.request("GET", "/").header("tidegate-priority", priority);
    request.body(Full::default()).unwrap()
}

#[tokio::test]
async fn low_uses_its_share_of_the_places_and_the_others_all() {
    let upstreams = Upstream::several(2).await;
    let config = "[routing]\nactive_requests_threshold = 10\nlow_share = 0.5\n";
    let gateway = TestGateway::start(config, &addresses(&upstreams));
    let client = Client::new(gateway.address);
    let mut low = Flood::new(client, 40, || request(client, "low"));
    let refused = low.answers(30).await;
    assert_eq!(count(&refused, 503), 30);
    assert_eq!(refused[0].json()["reason"], "all_busy");
    assert_eq!(refused[0].json()["threshold"], Value::Null, "what is left is kept for others");
    eventually("low has its share", || upstreams.iter().all(|w| w.active() == 5)).await;
    let mut normal = Flood::new(client, 14, || request(client, "normal"));
    assert_eq!(count(&normal.answers(4).await, 503), 4);
    eventually("all places are taken", || upstreams.iter().all(|w| w.active() == 10)).await;
    upstreams.iter().for_each(Upstream::open);
    assert_eq!(count(&low.rest().await, 200), 10);
    assert_eq!(count(&normal.rest().await, 200), 10);
    assert!(upstreams.iter().all(|upstream| upstream.peak() == 10));
    gateway.balances().await;
}

#[tokio::test]
async fn low_is_refused_first_by_blocks_and_tokens_too() {
    for (page, name) in [
        (page(&[(780, 1000, 0, 0)]), "active_decode_blocks"),
        (page(&[(0, 1000, 780, 0)]), "active_prefill_tokens"),
    ] {
        let upstream = Upstream::start().await.telling(&page);
        let config = "[routing]\nload_source = \"scrape\"\nscrape_interval_ms = 10\nlow_share = 0.9\n\
                      active_decode_blocks_threshold = 0.85\nactive_prefill_tokens_threshold = 850\n";
        let gateway = TestGateway::start(config, &[upstream.address]);
        until_known(&gateway).await;
        let client = Client::new(gateway.address);
        for (priority, status) in [("low", 503), ("normal", 200), ("high", 200)] {
            let answer = client.send(request(client, priority)).await;
            assert_eq!(answer.status, status, "{name}: {priority}");
        }
    }
}

#[tokio::test]
async fn while_low_is_served_beside_normal_no_normal_is_refused_for_it() {
    let upstream = Upstream::start().await;
    let config = "[routing]\nactive_requests_threshold = 20\nlow_share = 0.5\n";
    let gateway = TestGateway::start(config, &[upstream.address]);
    let client = Client::new(gateway.address);
    let low = Flood::new(client, 100, || request(client, "low"));
    let normal = Flood::new(client, 10, || request(client, "normal"));
    assert_eq!(count(&normal.rest().await, 200), 10);
    let low = low.rest().await;
    assert_eq!(count(&low, 200) + count(&low, 503), 100);
    gateway.balances().await;
}
