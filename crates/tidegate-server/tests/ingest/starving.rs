//! One sender has a hundred times as much to send as the others. It waits for itself, not they for it.

use crate::http::eventually;
use crate::support::{Peer, TestIngest, batch};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tidegate::frame::{Ack, FrameKind, FrameLimits, Reassembler};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{interval, sleep};

const SMALL: [&str; 4] = ["small-1", "small-2", "small-3", "small-4"];
const RECORDS: usize = 20;

/// Sends a small batch every 25 ms and reads the acks; how long each took.
async fn little(name: &'static str, mut peer: Peer, count: u64) -> Vec<Duration> {
    let (mut ticks, mut latencies) = (interval(Duration::from_millis(25)), Vec::new());
    for seq in 1..=count {
        ticks.tick().await;
        let sent = Instant::now();
        peer.send(&batch(name, (seq, seq - 1), RECORDS)).await;
        peer.acked(seq).await;
        latencies.push(sent.elapsed());
    }
    latencies.sort();
    latencies
}

/// Sends as much as goes, for ever; counts its records that are acked.
async fn much(peer: Peer, acked: Arc<AtomicU64>) {
    let (mut reader, mut writer) = peer.tcp.into_split();
    let answered = Arc::new(AtomicU64::new(0));
    let reading = async {
        let mut reassembler = Reassembler::new(FrameLimits::default());
        loop {
            let mut chunk = bytes::BytesMut::with_capacity(16_384);
            if reader.read_buf(&mut chunk).await.unwrap() == 0 {
                return;
            }
            reassembler.push(chunk.freeze());
            while let Some(frame) = reassembler.next().unwrap() {
                assert_eq!(frame.kind, FrameKind::Ack, "nothing of it is refused");
                let count = Ack::decode(&frame).unwrap().seqs.count();
                answered.fetch_add(count, Ordering::Relaxed);
                acked.fetch_add(count * 500, Ordering::Relaxed);
            }
        }
    };
    let writing = async {
        for seq in 1_u64.. {
            while seq - answered.load(Ordering::Relaxed) > 900 {
                sleep(Duration::from_millis(1)).await;
            }
            let settled = answered.load(Ordering::Relaxed).saturating_sub(100);
            writer.write_all(&batch("much", (seq, settled), 500)).await.unwrap();
        }
    };
    tokio::join!(reading, writing);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_sends_a_hundred_times_as_much_does_not_starve_the_others() {
    let ingest = TestIngest::start();
    let acked = Arc::new(AtomicU64::new(0));
    let flood = tokio::spawn(much(Peer::named(ingest.frames, "much").await, Arc::clone(&acked)));
    let load = || acked.load(Ordering::Relaxed);
    eventually("the store is loaded", || load() > 20_000).await;
    let (from, since) = (load(), Instant::now());
    let mut others = Vec::new();
    for name in SMALL {
        let peer = Peer::named(ingest.frames, name).await;
        others.push(tokio::spawn(little(name, peer, 40)));
    }
    let mut medians = Vec::new();
    for other in others {
        let latencies = other.await.unwrap();
        medians.push(latencies[latencies.len() / 2]);
    }
    let took = since.elapsed();
    let much_per_s = (load() - from) as f64 / took.as_secs_f64();
    flood.abort();
    let little_per_s = 40.0 * RECORDS as f64 / took.as_secs_f64();
    assert!(much_per_s > 20.0 * little_per_s, "{much_per_s} a second is no flood: {little_per_s}");
    // 900 batches of 500 are before it in line, and so long it waits for its own; the others for a part of that.
    let own_wait = Duration::from_secs_f64(900.0 * 500.0 / much_per_s);
    for median in medians {
        assert!(median < own_wait / 2, "{median:?} of {own_wait:?}");
    }
}
