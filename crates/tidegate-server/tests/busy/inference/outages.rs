//! Servers that go away and come back.

use super::streams::{closed_loop, server};
use crate::support::TestGateway;
use crate::traffic::{fault, until};
use serde_json::json;
use std::time::{Duration, Instant};

const AUTO: &str = "[routing]\nload_source = \"scrape\"\nlimit = \"auto\"\n";

/// Twice as many clients as both servers have slots, so that requests wait throughout.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_killed_with_streams_open_is_used_as_soon_as_it_is_back() {
    for down in [Duration::from_millis(50), Duration::from_millis(1_500)] {
        let servers = ["killed", "other"].map(|name| server(name, |_| {}));
        let addresses = [servers[0].address(), servers[1].address()];
        let gateway = TestGateway::start(AUTO, &addresses);
        let start = Instant::now();
        let time = Duration::from_secs(8) + down;
        let load = tokio::spawn(closed_loop(gateway.address, 32, start + time));
        let both = |stats: &serde_json::Value| {
            let upstreams = stats["upstreams"].as_array().unwrap();
            upstreams.iter().all(|upstream| upstream["in_flight"].as_u64() >= Some(8))
        };
        until(&gateway, "both are full", both).await;
        let kill = json!({"dead": true, "for_ms": down.as_millis() as u64});
        fault(&servers[0], &kill).await;
        tokio::time::sleep(down).await;
        let back = Instant::now();
        let window = Duration::from_secs(2);
        let streams = load.await.unwrap();
        let begun_by = |name: &str| {
            let is_in = |at: Instant| at >= back && at < back + window;
            let of = streams.iter().filter(|one| one.server.as_deref() == Some(name));
            of.filter(|one| one.first.is_some_and(|(at, _)| is_in(at))).count()
        };
        let (killed, other) = (begun_by("killed"), begun_by("other"));
        // It is as fast as the other: half of all, but for the time in which its limit grows.
        assert!(3 * killed >= other, "down {down:?}: {killed}, the other {other}");
        let failed = streams.iter().filter(|one| !one.is_whole && one.status == 200).count();
        assert!(failed >= 1, "streams were open");
    }
}
