//! Peers that say nothing more, and never say that they are gone.

use crate::http::eventually;
use crate::support::{Database, Peer, TestIngest, batch, lines_peer};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;

const IDLE: Duration = Duration::from_millis(400);

#[tokio::test]
async fn a_silent_peer_is_let_go_of_with_all_that_was_kept_for_it() {
    let ingest = TestIngest::start_with(|config| config.idle_timeout = IDLE);
    let mut named = Peer::named(ingest.frames, "a").await;
    let mut mute = Peer::connect(ingest.frames).await;
    let mut half = Peer::named(ingest.frames, "b").await;
    let frame = batch("b", (1, 0), 100);
    half.send(&frame[..frame.len() / 2]).await;
    let mut lines = lines_peer(ingest.lines).await;
    lines.write_all(b"tokens,tenant=a out").await.unwrap();
    eventually("parts of frames are held", || ingest.stats().pipeline.memory_bytes > 0).await;
    named.closed().await;
    mute.closed().await;
    half.closed().await;
    assert_eq!(lines.read(&mut [0; 8]).await.unwrap(), 0);
    eventually("every place is free", || ingest.connections() == 0).await;
    eventually("nothing is held", || ingest.stats().pipeline.memory_bytes == 0).await;
    assert!(ingest.usage().await.is_empty(), "half a line is no line");
}

#[tokio::test]
async fn who_speaks_now_and_then_is_not_idle() {
    let ingest = TestIngest::start_with(|config| config.idle_timeout = IDLE);
    let mut peer = Peer::named(ingest.frames, "a").await;
    for seq in 1..=5 {
        sleep(IDLE / 2).await;
        peer.send(&batch("a", (seq, seq - 1), 2)).await;
        peer.acked(seq).await;
    }
}

#[tokio::test]
async fn who_waits_for_an_ack_is_not_idle() {
    let database = Database::shared();
    let ingest = TestIngest::start_with(|config| {
        config.idle_timeout = IDLE;
        config.store = database.url();
    });
    let mut peer = Peer::named(ingest.frames, "a").await;
    let blocked = database.block().await;
    peer.send(&batch("a", (1, 0), 2)).await;
    sleep(4 * IDLE).await;
    assert_eq!(ingest.stats().connections_frames, 1);
    blocked.lift().await;
    peer.acked(1).await;
    // From here on it is.
    peer.closed().await;
}
