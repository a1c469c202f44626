//! Floods of HTTP/2 frames that cost a client nothing. Health answers meanwhile, and nothing is left of them.

use crate::h2_frames::*;
use crate::measure::{alone, descriptors, resident_kib, slowest_check};
use crate::support::{RawUpstream, TestGateway, Upstream, eventually};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// The time of a flood that the gateway does not cut off.
const FLOOD: Duration = Duration::from_secs(2);

/// Connections that flood at once.
const CONNECTIONS: usize = 4;

/// Memory that a flood may leave, the allocator's own included. Each sends hundreds of megabytes if it may.
const GROWTH_KIB_MAX: u64 = 32 * 1024;

/// Bytes that one connection sends again and again.
type Flood = fn(round: u32) -> Vec<u8>;

/// Streams of a round that were opened and reset at once, as CVE-2023-44487 did.
fn rapid_reset(round: u32) -> Vec<u8> {
    let streams = (0..100).map(|index| 2 * (100 * round + index) + 1);
    let reset = |stream| {
        let head = frame(HEADERS, END_STREAM | END_HEADERS, stream, &request("GET", "/"));
        [head, frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])].concat()
    };
    streams.flat_map(reset).collect()
}

/// A head without an end, as CVE-2024-27316 did.
fn continuation(round: u32) -> Vec<u8> {
    let part = fields(&[("x-part", &"y".repeat(100))]).repeat(100);
    match round {
        0 => frame(HEADERS, END_STREAM, 1, &request("GET", "/")),
        _ => frame(CONTINUATION, 0, 1, &part),
    }
}

/// Parts of a head that are empty.
fn empty_continuation(round: u32) -> Vec<u8> {
    match round {
        0 => frame(HEADERS, END_STREAM, 1, &request("GET", "/")),
        _ => frame(CONTINUATION, 0, 1, &[]).repeat(1_000),
    }
}

/// A field of 100 bytes that is remembered, and then named by one byte for each of 16,000 times.
fn hpack_bomb(round: u32) -> Vec<u8> {
    let mut block = request("GET", "/");
    block.push(0x40);
    block.extend([6, b'x', b'-', b'b', b'o', b'm', b'b', 100]);
    block.extend([b'y'; 100]);
    block.extend([0xbe; 16_000]);
    frame(HEADERS, END_STREAM | END_HEADERS, 2 * round + 1, &block)
}

fn settings(_round: u32) -> Vec<u8> {
    frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 255, 255]).repeat(1_000)
}

fn pings(_round: u32) -> Vec<u8> {
    frame(PING, 0, 0, &[0; 8]).repeat(1_000)
}

fn empty_data(round: u32) -> Vec<u8> {
    match round {
        0 => frame(HEADERS, END_HEADERS, 1, &request("POST", "/")),
        _ => frame(DATA, 0, 1, &[]).repeat(1_000),
    }
}

fn window_updates(round: u32) -> Vec<u8> {
    match round {
        0 => frame(HEADERS, END_HEADERS, 1, &request("POST", "/")),
        _ => frame(WINDOW_UPDATE, 0, 1, &[0, 0, 0, 1]).repeat(1_000),
    }
}

fn unknown_frames(_round: u32) -> Vec<u8> {
    frame(0xfa, 0, 0, &[0; 100]).repeat(1_000)
}

/// Floods until the gateway closes or the time is over. What the gateway says is not read.
async fn flood(address: SocketAddr, flood: Flood) {
    let mut tcp = connect(address, &[]).await;
    let start = Instant::now();
    for round in 0.. {
        let left = FLOOD.saturating_sub(start.elapsed());
        // A gateway that reads no further is one that does not let itself be flooded.
        match timeout(left, tcp.write_all(&flood(round))).await {
            Ok(Ok(())) if start.elapsed() < FLOOD => {}
            _ => break,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_do_not_delay_health_and_leave_nothing() {
    let _alone = alone().await;
    let upstream = Upstream::start().await;
    let gateway = TestGateway::start("[listen]\nthreads = 1\n", &[upstream.address]);
    let floods: [(&str, Flood); 9] = [
        ("rapid reset", rapid_reset),
        ("CONTINUATION", continuation),
        ("empty CONTINUATION", empty_continuation),
        ("HPACK bomb", hpack_bomb),
        ("SETTINGS", settings),
        ("PING", pings),
        ("empty DATA", empty_data),
        ("WINDOW_UPDATE", window_updates),
        ("unknown frames", unknown_frames),
    ];
    // The first checks pay for what is made once.
    slowest_check(&gateway).await;
    let (resident, open) = (resident_kib(), descriptors());
    for (name, kind) in floods {
        let calm = slowest_check(&gateway).await;
        let attackers: Vec<_> =
            (0..CONNECTIONS).map(|_| tokio::spawn(flood(gateway.address, kind))).collect();
        let attacked = slowest_check(&gateway).await;
        let bound = calm * 10 + Duration::from_secs(1);
        assert!(attacked < bound, "{name}: {calm:?} became {attacked:?}");
        for attacker in attackers {
            attacker.await.unwrap();
        }
        eventually(name, || gateway.inner().metrics().connections == 0).await;
        gateway.balances().await;
        let growth = resident_kib().saturating_sub(resident);
        assert!(growth < GROWTH_KIB_MAX, "{name}: {growth} KiB more");
    }
    eventually("their descriptors are closed", || descriptors() < open + 10).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_without_a_window_free_their_slots() {
    let _alone = alone().await;
    let upstream = RawUpstream::start(|mut tcp: TcpStream| async move {
        if RawUpstream::read_head(&mut tcp).await {
            let _ = tcp.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9999999\r\n\r\n").await;
            let _ = tcp.write_all(&[b'x'; 1 << 20]).await;
            let _ = tcp.read(&mut [0; 1]).await;
        }
    })
    .await;
    let config = "[listen]\nthreads = 1\n[proxy]\nstream_idle_timeout_ms = 1000\n";
    let gateway = TestGateway::start(config, &[upstream.address]);
    const INITIAL_WINDOW: u16 = 4;
    let mut tcp = connect(gateway.address, &[(INITIAL_WINDOW, 0)]).await;
    for index in 0..50 {
        let head = frame(HEADERS, END_STREAM | END_HEADERS, 2 * index + 1, &request("GET", "/"));
        tcp.write_all(&head).await.unwrap();
    }
    eventually("they are in flight", || gateway.in_flight() == 50).await;
    slowest_check(&gateway).await;
    // The client is still there, and answers nothing.
    gateway.balances().await;
}
