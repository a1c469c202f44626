//! Peers that say nothing more, and never say that they are gone.

use crate::http::{eventually, undisturbed};
use crate::support::{Database, Peer, Said, TestIngest, batch, hello, lines_peer};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::sleep;

const IDLE: Duration = Duration::from_millis(400);

/// One that was welcomed, unless it was silent for too long before it could say who it is.
async fn named(ingest: &TestIngest, name: &str) -> Option<Peer> {
    let start = Instant::now();
    let mut peer = Peer::connect(ingest.frames).await;
    let _ = peer.tcp.write_all(&hello(name)).await;
    match peer.next().await {
        Some(Said::Welcome(_)) => return Some(peer),
        Some(other) => panic!("no welcome but {other:?}"),
        None => assert!(start.elapsed() >= IDLE, "closed after {:?}", start.elapsed()),
    }
    None
}

#[tokio::test]
async fn a_silent_peer_is_let_go_of_with_all_that_was_kept_for_it() {
    let ingest = TestIngest::start_with(|config| config.idle_timeout = IDLE);
    let mut silent = undisturbed("one is welcomed", async || named(&ingest, "a").await).await;
    let mut mute = Peer::connect(ingest.frames).await;
    let (mut half, began) = undisturbed("another is welcomed", async || {
        let began = Instant::now();
        Some((named(&ingest, "b").await?, began))
    })
    .await;
    let before = ingest.stats().counts.bytes;
    let frame = batch("b", (1, 0), 100);
    let (half_frame, half_line) = (&frame[..frame.len() / 2], b"tokens,tenant=a out");
    half.send(half_frame).await;
    let mut lines = lines_peer(ingest.lines).await;
    lines.write_all(half_line).await.unwrap();
    let sent = (half_frame.len() + half_line.len()) as u64;
    // Unless they were let go of before anybody could look.
    let came = || ingest.stats().counts.bytes >= before + sent || began.elapsed() >= IDLE;
    eventually("both parts have come", came).await;
    let held = || ingest.stats().pipeline.memory_bytes > 0 || began.elapsed() >= IDLE;
    eventually("parts are held", held).await;
    silent.closed().await;
    mute.closed().await;
    half.closed().await;
    let end = lines.read(&mut [0; 8]).await;
    assert!(matches!(end, Ok(0) | Err(_)), "{end:?}");
    eventually("every place is free", || ingest.connections() == 0).await;
    eventually("nothing is held", || ingest.stats().pipeline.memory_bytes == 0).await;
    assert!(ingest.usage().await.is_empty(), "half a line is no line");
}

#[tokio::test]
async fn who_speaks_now_and_then_is_not_idle() {
    let ingest = TestIngest::start_with(|config| config.idle_timeout = IDLE);
    let mut name = 0;
    undisturbed("five batches with pauses", async || {
        name += 1;
        let mut said_last = Instant::now();
        let mut peer = named(&ingest, &format!("a{name}")).await?;
        for seq in 1..=5 {
            sleep(IDLE / 2).await;
            let since = std::mem::replace(&mut said_last, Instant::now());
            let sent = peer.tcp.write_all(&batch("a", (seq, seq - 1), 2)).await;
            if sent.is_ok() && is_acked(&mut peer, seq).await {
                continue;
            }
            // Let go of, which is right if this was late, or the other side too late to see that it was not.
            assert!(since.elapsed() >= IDLE, "{seq} came after {:?}", since.elapsed());
            return None;
        }
        Some(())
    })
    .await;
}

/// Whether the number is acknowledged before the connection ends.
async fn is_acked(peer: &mut Peer, seq: u64) -> bool {
    loop {
        match peer.next().await {
            Some(Said::Ack(ack)) if ack.seqs.contains(seq) => return true,
            Some(Said::Ack(_)) => {}
            Some(other) => panic!("no ack of {seq} but {other:?}"),
            None => return false,
        }
    }
}

#[tokio::test]
async fn who_waits_for_an_ack_is_not_idle() {
    let database = Database::shared();
    let ingest = TestIngest::start_with(|config| {
        config.idle_timeout = IDLE;
        config.store = database.url();
    });
    let (mut blocker, mut name) = (Some(database.blocker().await), 0);
    let (mut peer, blocked) = undisturbed("a batch before it is idle", async || {
        name += 1;
        let began = Instant::now();
        let mut peer = named(&ingest, &format!("a{name}")).await?;
        let blocked = blocker.take().unwrap().block().await;
        let came = ingest.stats().counts.records;
        let _ = peer.tcp.write_all(&batch("a", (1, 0), 2)).await;
        let is_in = || ingest.stats().counts.records > came || began.elapsed() >= IDLE;
        eventually("the batch is in, or late", is_in).await;
        if began.elapsed() < IDLE {
            return Some((peer, blocked));
        }
        blocker = Some(blocked.lift().await);
        None
    })
    .await;
    eventually("those that were late are gone", || ingest.stats().connections_frames <= 1).await;
    sleep(4 * IDLE).await;
    assert_eq!(ingest.stats().connections_frames, 1);
    blocked.lift().await;
    peer.acked(1).await;
    // From here on it is.
    peer.closed().await;
}
