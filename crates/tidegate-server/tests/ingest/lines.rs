//! Lines that are none, and lines that the network cut.

use crate::http::eventually;
use crate::support::{TestIngest, lines_peer};
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::sleep;

async fn eventually_stored(ingest: &TestIngest, tenant: &str, records: u64) {
    let since = Instant::now();
    while ingest.stored(tenant).await < records {
        assert!(since.elapsed() < Duration::from_secs(30), "never were {records} records stored");
        sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(ingest.stored(tenant).await, records);
}

#[tokio::test]
async fn lines_that_are_none_are_counted_by_reason_and_those_around_them_stored() {
    let ingest = TestIngest::start();
    let mut peer = lines_peer(ingest.lines).await;
    let text = "tokens,tenant=a output=1i\n\
                this is not line protocol\n\
                tokens,tenant=a\n\
                # a comment\n\
                \n\
                tokens output=5i\n\
                tokens,tenant=a output=notanumber\n\
                tokens,tenant=a output=2i 17e9\n\
                \u{1}\u{2}\u{3}\n\
                tokens,tenant=a output=3i\n";
    peer.write_all(text.as_bytes()).await.unwrap();
    eventually_stored(&ingest, "a", 2).await;
    let stats = ingest.stats();
    let refused: u64 = stats.counts.rejected.iter().map(|row| row.count).sum();
    assert!(refused >= 4, "{:?}", stats.counts.rejected);
    assert!(stats.counts.rejected.iter().all(|row| row.protocol == "lines"));
    assert!(stats.counts.rejected.len() >= 2, "by reason: {:?}", stats.counts.rejected);
    // It lives on.
    peer.write_all(b"tokens,tenant=a output=1i\n").await.unwrap();
    eventually_stored(&ingest, "a", 3).await;
}

#[tokio::test]
async fn binary_garbage_harms_nobody() {
    let ingest = TestIngest::start();
    let mut garbage = lines_peer(ingest.lines).await;
    let noise: Vec<u8> = (0..300_000_u64)
        .map(|number| (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8)
        .collect();
    garbage.write_all(&noise).await.unwrap();
    garbage.write_all(b"\ntokens,tenant=a output=1i\n").await.unwrap();
    eventually_stored(&ingest, "a", 1).await;
    let refused: u64 = ingest.stats().counts.rejected.iter().map(|row| row.count).sum();
    assert!(refused > 100, "{:?}", ingest.stats().counts.rejected);
}

#[tokio::test]
async fn an_endless_line_is_bounded_in_memory_and_counted_once() {
    let ingest = TestIngest::start_with(|config| config.line_bytes_max = 1_024);
    let mut peer = lines_peer(ingest.lines).await;
    let mut most = 0;
    for _ in 0..256 {
        peer.write_all(&[b'x'; 16_384]).await.unwrap();
        most = most.max(ingest.stats().pipeline.memory_bytes);
    }
    peer.write_all(b"\ntokens,tenant=a output=1i\n").await.unwrap();
    eventually_stored(&ingest, "a", 1).await;
    assert_eq!(ingest.rejected("line_too_long"), 1, "{:?}", ingest.stats().counts.rejected);
    // 4 MiB came.
    assert!(most < 1 << 20, "{most} bytes were held");
}

#[tokio::test]
async fn a_line_over_several_packets_is_one_and_the_last_needs_no_newline() {
    let ingest = TestIngest::start();
    let mut peer = lines_peer(ingest.lines).await;
    for part in ["tokens,ten", "ant=a out", "put=12", "34i\ntokens,tenant=a outp", "ut=5i"] {
        peer.write_all(part.as_bytes()).await.unwrap();
        sleep(Duration::from_millis(5)).await;
    }
    peer.shutdown().await.unwrap();
    eventually_stored(&ingest, "a", 2).await;
    assert_eq!(ingest.usage().await[0].quantity, Some(1_239.into()));
    eventually("its place is free", || ingest.connections() == 0).await;
}

/// Half a number is a number too, and would be charged for.
#[tokio::test]
async fn a_line_that_is_cut_off_by_a_reset_or_by_a_stop_is_not_taken_for_a_whole_one() {
    let ingest = TestIngest::start();
    let cut = "tokens,tenant=a output=1i\ntokens,tenant=a output=12";
    let mut reset = lines_peer(ingest.lines).await;
    send_and_wait(&ingest, &mut reset, cut).await;
    // The rest, 34i, is lost on the way.
    reset.set_zero_linger().unwrap();
    drop(reset);
    eventually("its place is free", || ingest.connections() == 0).await;
    assert_eq!(ingest.rejected("cut_off"), 1);
    eventually_stored(&ingest, "a", 1).await;

    let mut stopped = lines_peer(ingest.lines).await;
    send_and_wait(&ingest, &mut stopped, cut).await;
    let ingest = ingest.restart().await;
    assert_eq!(ingest.stored("a").await, 2);
    assert_eq!(ingest.usage().await[0].quantity, Some(2.into()));
}

async fn send_and_wait(ingest: &TestIngest, peer: &mut TcpStream, text: &str) {
    let before = ingest.stats().counts.bytes;
    peer.write_all(text.as_bytes()).await.unwrap();
    let came = before + text.len() as u64;
    eventually("it came", || ingest.stats().counts.bytes == came).await;
}
