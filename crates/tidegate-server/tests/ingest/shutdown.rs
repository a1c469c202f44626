//! The end: what was acknowledged is stored, and nobody waits longer than the grace time.

use crate::http::eventually;
use crate::support::{Database, Peer, Said, TestIngest, batch};
use std::time::{Duration, Instant};
use tidegate_server::ingest::Flushed;
use tokio::io::AsyncWriteExt;

#[tokio::test]
async fn a_stop_under_load_stores_what_it_acknowledges_and_acknowledges_what_it_stores() {
    let ingest = TestIngest::start();
    let mut senders = Vec::new();
    for name in ["a", "b", "c"] {
        let peer = Peer::named(ingest.frames, name).await;
        senders.push(tokio::spawn(flood(name, peer)));
    }
    let records = || ingest.stats().counts.records_stored;
    eventually("it is under load", || records() > 20_000).await;
    let ingest = ingest.restart().await;
    for sender in senders {
        let (name, mut acked) = sender.await.unwrap();
        let mut peer = Peer::connect(ingest.frames).await;
        peer.send(&crate::support::hello(name)).await;
        let welcome = peer.welcome().await;
        acked.sort_unstable();
        acked.dedup();
        assert!(acked.iter().all(|seq| welcome.has(*seq)), "{name}: an acked batch is missing");
        let stored = ingest.stored(name).await / 50;
        // The last acks may be lost with the connection; a sender asks again.
        assert!(stored >= acked.len() as u64, "{name}: {stored} stored, {} acked", acked.len());
        assert_eq!(stored, welcome.seen.unwrap().highest(), "{name}: in order, none skipped");
    }
}

/// Sends until the connection ends; which batches were acked.
async fn flood(name: &'static str, peer: Peer) -> (&'static str, Vec<u64>) {
    let (reader, mut writer) = peer.tcp.into_split();
    let reading = tokio::spawn(read_acks(reader));
    for seq in 1_u64.. {
        let settled = seq.saturating_sub(900);
        if writer.write_all(&batch(name, (seq, settled), 50)).await.is_err() {
            break;
        }
    }
    (name, reading.await.unwrap())
}

async fn read_acks(reader: tokio::net::tcp::OwnedReadHalf) -> Vec<u64> {
    use tidegate::frame::{Ack, FrameKind, FrameLimits, Reassembler};
    use tokio::io::AsyncReadExt;
    let (mut reader, mut reassembler) = (reader, Reassembler::new(FrameLimits::default()));
    let mut acked = Vec::new();
    loop {
        let mut chunk = bytes::BytesMut::with_capacity(16_384);
        match reader.read_buf(&mut chunk).await {
            Ok(0) | Err(_) => return acked,
            Ok(_) => reassembler.push(chunk.freeze()),
        }
        while let Some(frame) = reassembler.next().unwrap() {
            if frame.kind == FrameKind::Ack {
                acked.extend(Ack::decode(&frame).unwrap().seqs.iter());
            }
        }
    }
}

#[tokio::test]
async fn a_store_that_blocks_holds_a_stop_up_for_the_grace_time_and_no_longer() {
    let database = Database::shared();
    let ingest = TestIngest::start_with(|config| config.store = database.url());
    let mut peer = Peer::named(ingest.frames, "a").await;
    let blocked = database.block().await;
    peer.send(&batch("a", (1, 0), 2)).await;
    eventually("it is in", || ingest.stats().counts.records == 2).await;
    let (start, grace) = (Instant::now(), Duration::from_millis(700));
    let (flushed, _folder) = ingest.shutdown(grace).await;
    let took = start.elapsed();
    assert_eq!(flushed, Flushed::Cut);
    assert!(took >= grace && took < 10 * grace, "{took:?}");
    while let Some(said) = peer.next().await {
        // Signs of life are welcome.
        let Said::Ack(ack) = said else { panic!("{said:?}") };
        assert!(ack.seqs.is_empty(), "acknowledged and not stored: {ack:?}");
    }
    blocked.lift().await;
}

#[tokio::test]
async fn a_quiet_node_stops_at_once_whoever_is_connected() {
    let ingest = TestIngest::start();
    let mut idle = Peer::named(ingest.frames, "a").await;
    let mut mute = Peer::connect(ingest.frames).await;
    let mut lines = crate::support::lines_peer(ingest.lines).await;
    lines.write_all(b"tokens,tenant=a output=1i\n").await.unwrap();
    eventually("all are in", || ingest.connections() == 3 && ingest.stats().counts.lines == 1)
        .await;
    let (start, grace) = (Instant::now(), Duration::from_secs(20));
    let (flushed, _folder) = ingest.shutdown(grace).await;
    assert_eq!(flushed, Flushed::All);
    assert!(start.elapsed() < grace / 2, "{:?}", start.elapsed());
    idle.closed().await;
    mute.closed().await;
}
