//! The pick by what servers report, and the latency that it counts.

use super::streams::{closed_loop, server, stream};
use crate::support::{RawUpstream, TestGateway};
use crate::traffic::{status, until, until_known};
use serde_json::Value;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;

const SCRAPED: &str = "[routing]\nload_source = \"scrape\"\n";

/// Sends 50 streams, four at a time, while another client holds so many at the first of two servers. Returns how
/// many of ours the first one got.
async fn sent_to_the_filled_one(limit: &str, others: usize) -> usize {
    let slow = |name| server(name, |config| config.engine.decode_ms_per_token = 2.0);
    let (filled, free) = (server("filled", |_| {}), slow("free"));
    let config = format!("{SCRAPED}limit = \"{limit}\"\n");
    let gateway = TestGateway::start(&config, &[filled.address(), free.address()]);
    until_known(&gateway).await;
    let until_late = Instant::now() + Duration::from_secs(60);
    let held = tokio::spawn(closed_loop(filled.address(), others, until_late));
    let is_filled = |stats: &Value| {
        let report = &stats["upstreams"][0]["load"]["ranks"][0]["report"];
        report["running"] == 8 && report["waiting"] == others - 8
    };
    until(&gateway, "another client fills it", is_filled).await;
    let mut ours = Vec::new();
    for _ in 0..13 {
        let of_four = [(); 4].map(|()| tokio::spawn(stream(gateway.address)));
        for one in of_four {
            ours.push(one.await.unwrap());
        }
    }
    held.abort();
    assert!(ours.iter().all(|one| one.is_whole && one.status == 200), "{ours:?}");
    ours.iter().filter(|one| one.server.as_deref() == Some("filled")).count()
}

#[tokio::test]
async fn no_request_goes_to_a_server_that_another_client_fills() {
    for limit in ["auto", "off"] {
        assert_eq!(sent_to_the_filled_one(limit, 16).await, 0, "limit {limit}");
    }
}

/// Sends the head of a response at once and its body later, as servers do with a stream that waits.
#[tokio::test]
async fn latency_is_the_time_to_the_first_byte_of_the_body() {
    let body_after = Duration::from_millis(300);
    let upstream = RawUpstream::start(move |mut tcp| async move {
        while RawUpstream::read_head(&mut tcp).await {
            let head = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n";
            tcp.write_all(head).await.unwrap();
            tokio::time::sleep(body_after).await;
            tcp.write_all(b"ok").await.unwrap();
        }
    })
    .await;
    let gateway = TestGateway::start("", &[upstream.address]);
    assert_eq!(status(&gateway).await, 200);
    let load = gateway.stats().await["upstreams"][0]["load"].clone();
    assert!(load["latency_us"].as_u64().unwrap() >= 250_000, "{load}");
}
