//! Servers that go away and come back.

use super::streams::{closed_loop, server};
use crate::support::TestGateway;
use crate::traffic::{fault, until};
use serde_json::json;
use std::time::{Duration, Instant};

const AUTO: &str = "[routing]\nload_source = \"scrape\"\nlimit = \"auto\"\n";

/// Twice as many clients as both servers have slots, so that requests wait throughout. A stream takes 3 s, so that
/// none that begins at the restarted server ends within the time that is judged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_killed_with_streams_open_is_used_as_soon_as_it_is_back() {
    for down in [Duration::from_millis(50), Duration::from_millis(1_500)] {
        let servers = ["killed", "other"]
            .map(|name| server(name, |config| config.engine.decode_ms_per_token = 40.0));
        let addresses = [servers[0].address(), servers[1].address()];
        let gateway = TestGateway::start(AUTO, &addresses);
        let start = Instant::now();
        let time = Duration::from_secs(12) + down;
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
        let is_judged = |at: Instant| at >= back && at < back + window;
        let begun = streams.iter().filter(|one| one.first.is_some_and(|(at, _)| is_judged(at)));
        let killed = begun.filter(|one| one.server.as_deref() == Some("killed")).count();
        // It has 8 slots; its limit starts again from 4.
        assert!(killed >= 4, "down {down:?}: {killed} of its 8 slots are used");
        let failed = streams.iter().filter(|one| !one.is_whole && one.status == 200).count();
        assert!(failed >= 1, "streams were open");
    }
}
