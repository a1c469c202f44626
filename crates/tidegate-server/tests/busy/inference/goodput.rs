//! Goodput under overload: requests whose first token comes in time.

use super::streams::{Streamed, closed_loop, open_loop, server};
use crate::support::TestGateway;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Only the source of load is said, because the suites turn it off; the limit is what it is by default.
const AUTO: &str = "[routing]\nload_source = \"scrape\"\nlimit = \"auto\"\n";

/// First tokens count up to this time: some services of a step, and two thirds of a stream.
const IN_TIME: Duration = Duration::from_millis(500);

/// The time that a limit is looked for.
const WARM: Duration = Duration::from_secs(2);
const TIME: Duration = Duration::from_secs(6);

/// First tokens in time, a second, after the limit was found.
fn goodput(streams: &[Streamed], start: Instant) -> f64 {
    let (from, until) = (start + WARM, start + TIME);
    let is_good = |one: &&Streamed| {
        one.first.is_some_and(|(at, after)| at >= from && at < until && after <= IN_TIME)
    };
    streams.iter().filter(is_good).count() as f64 / (TIME - WARM).as_secs_f64()
}

/// Streams a second that a server ends when its batch is always full.
async fn capacity(server: SocketAddr) -> f64 {
    let time = Duration::from_secs(3);
    let ended = closed_loop(server, 16, Instant::now() + time).await;
    ended.len() as f64 / time.as_secs_f64()
}

/// Two servers at 3 and at 10 times of what they can do. The best of three tries counts: others use the machine
/// too, and no try of a gateway that floods the servers or lets requests wait comes near.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_stay_at_their_capacity_with_first_tokens_in_time() {
    let servers = ["a", "b"].map(|name| server(name, |_| {}));
    let [a, b] = [servers[0].address(), servers[1].address()];
    let together = tokio::join!(capacity(a), capacity(b));
    let most = together.0 + together.1;
    for times in [3.0, 10.0] {
        let mut best: f64 = 0.0;
        for _ in 0..3 {
            let gateway = TestGateway::start(AUTO, &[a, b]);
            let start = Instant::now();
            let streams = open_loop(gateway.address, times * most, TIME).await;
            best = best.max(goodput(&streams, start) / most);
            if best >= 0.95 {
                break;
            }
        }
        assert!(best >= 0.95, "{best:.2} of {most:.1}/s at {times} times as many");
    }
}
