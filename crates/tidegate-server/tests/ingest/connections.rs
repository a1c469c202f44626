//! How many may come at once, and what each may cost.

use crate::http::eventually;
use crate::support::{Peer, TestIngest, batch, lines_peer};
use crate::tokens::{A, CLIENTS};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A connection whose sender has sent a line.
async fn known_by_lines(ingest: &TestIngest) -> TcpStream {
    let before = ingest.stats().counts.records;
    let mut lines = lines_peer(ingest.lines).await;
    lines.write_all(b"m,tenant=a value=1 1\n").await.unwrap();
    eventually("its line is in", || ingest.stats().counts.records > before).await;
    lines
}

#[tokio::test]
async fn one_too_many_is_turned_away_until_a_place_is_free() {
    let ingest = TestIngest::start_with(|config| config.connections_max = 2);
    let mut first = Peer::named(ingest.frames, "a").await;
    let second = Peer::named(ingest.frames, "b").await;
    Peer::connect(ingest.frames).await.closed().await;
    // Each protocol has its own places.
    let lines = [known_by_lines(&ingest).await, known_by_lines(&ingest).await];
    let mut third = lines_peer(ingest.lines).await;
    assert!(matches!(third.read(&mut [0; 8]).await, Ok(0) | Err(_)));
    assert_eq!(ingest.stats().connections_refused, 2);
    drop((second, lines));
    eventually("places are free", || ingest.connections() == 1).await;
    Peer::named(ingest.frames, "b").await;
    // Who was in was not touched.
    first.send(&batch("a", (1, 0), 2)).await;
    first.acked(1).await;
}

/// Connections that say nothing need no token: they must not keep out those who have one.
#[tokio::test]
async fn who_says_nothing_makes_room_for_others_the_oldest_first() {
    let ingest = TestIngest::start_as(CLIENTS, |config| {
        config.tokens_required = true;
        config.connections_max = 4;
    });
    let mut known = Peer::with_token(ingest.frames, "known", A).await;
    let mut silent = Vec::new();
    for _ in 0..12 {
        silent.push(TcpStream::connect(ingest.frames).await.unwrap());
    }
    eventually("the port is full", || ingest.connections() == 4).await;
    let mut sender = Peer::with_token(ingest.frames, "sender", A).await;
    for (peer, seq) in [(&mut sender, 1), (&mut known, 1)] {
        peer.send(&batch("a", (seq, 0), 2)).await;
        peer.acked(seq).await;
    }
    let mut lines = Vec::new();
    for _ in 0..12 {
        lines.push(lines_peer(ingest.lines).await);
    }
    let mut sender = lines_peer(ingest.lines).await;
    sender.write_all(format!("auth {A}\nm,tenant=a value=1 1\n").as_bytes()).await.unwrap();
    eventually("its line is stored", || ingest.stats().counts.records_stored == 5).await;
    assert_eq!(ingest.stats().connections_refused, 0);
    assert!(matches!(silent[0].read(&mut [0; 8]).await, Ok(0) | Err(_)), "the oldest has gone");
    assert!(matches!(lines[0].read(&mut [0; 8]).await, Ok(0) | Err(_)), "the oldest has gone");
}

/// Where no token is needed, a sender may take its time: only others in need end its connection.
#[tokio::test]
async fn who_needs_a_token_has_ten_seconds_to_show_it() {
    let guarded = TestIngest::start_as(CLIENTS, |config| config.tokens_required = true);
    let open = TestIngest::start();
    let mut peers = Vec::new();
    for address in [guarded.frames, guarded.lines, open.frames, open.lines] {
        peers.push(TcpStream::connect(address).await.unwrap());
    }
    let mut known = Peer::with_token(guarded.frames, "known", A).await;
    for peer in &mut peers[..2] {
        let ended = tokio::time::timeout(Duration::from_secs(60), peer.read(&mut [0; 8])).await;
        assert!(matches!(ended.expect("it is ended in time"), Ok(0) | Err(_)));
    }
    for peer in &mut peers[2..] {
        let mut byte = [0; 1];
        let silence = tokio::time::timeout(Duration::from_millis(100), peer.read(&mut byte));
        assert!(silence.await.is_err(), "it is still open");
    }
    known.send(&batch("a", (1, 0), 2)).await;
    known.acked(1).await;
}
