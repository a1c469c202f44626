//! Connections that fill the admin port and say nothing, half a head, or a head without its body.

use crate::measure::alone;
use crate::support::{Client, TestGateway, Upstream};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// More than the port serves at once.
const ATTACKERS: usize = 400;

/// The slowest of 20 probes, one after the other, without a retry.
async fn slowest_probe(gateway: &TestGateway) -> Duration {
    let mut slowest = Duration::ZERO;
    for path in ["/health/live", "/metrics"].repeat(10) {
        let start = Instant::now();
        assert_eq!(Client::new(gateway.admin).get(path).await.status, 200);
        slowest = slowest.max(start.elapsed());
    }
    slowest
}

async fn stalled(gateway: &TestGateway, start: &[u8]) -> Vec<TcpStream> {
    let mut attackers = Vec::new();
    for _ in 0..ATTACKERS {
        let mut tcp = TcpStream::connect(gateway.admin).await.unwrap();
        // One that had to make room is reset.
        let _ = tcp.write_all(start).await;
        attackers.push(tcp);
    }
    attackers
}

#[tokio::test]
async fn stalled_connections_do_not_delay_health_or_metrics() {
    let _alone = alone().await;
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("", &[upstream.address]);
    let starts: [&[u8]; 4] = [
        b"",
        b"GET /health/live HTTP/1.1\r\nhost: x\r\nx-slow",
        b"GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n",
        b"POST /busy_threshold HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n",
    ];
    for start in starts {
        let calm = slowest_probe(&gateway).await;
        let attackers = stalled(&gateway, start).await;
        let attacked = slowest_probe(&gateway).await;
        // The least difference that counts is that of a machine that does something else for a moment.
        let bound = calm * 10 + Duration::from_millis(500);
        assert!(attacked < bound, "{calm:?} became {attacked:?} beside {:?}", start.utf8_chunks());
        drop(attackers);
    }
}
