//! A peer that sends and never reads its answers.

use crate::http::eventually;
use crate::support::{Peer, TestIngest, batch};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpSocket;
use tokio::time::sleep;

#[tokio::test]
async fn who_never_reads_is_cut_and_nobody_else_waits_for_it() {
    let ingest = TestIngest::start_with(|config| config.write_timeout = Duration::from_millis(300));
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(2_048).unwrap();
    let mut deaf = socket.connect(ingest.frames).await.unwrap();
    // Each is answered by a refusal at once: it has not said who it is.
    let burst: Vec<u8> = (1..=200).flat_map(|seq| batch("a", (seq, 0), 2)).collect();
    let flood = tokio::spawn(async move {
        let mut bursts = 0;
        // Ends when the other side has closed.
        while deaf.write_all(&burst).await.is_ok() {
            bursts += 1;
            sleep(Duration::from_millis(20)).await;
        }
        bursts
    });
    let mut other = Peer::named(ingest.frames, "other").await;
    for seq in 1..=20 {
        other.send(&batch("other", (seq, seq - 1), 2)).await;
        other.acked(seq).await;
    }
    eventually("it was cut", || ingest.connections() == 1).await;
    let bursts = flood.await.unwrap();
    assert!(bursts > 1, "it was cut before it was owed much");
    assert_eq!(ingest.stored("other").await, 40);
    eventually("nothing is held", || ingest.stats().pipeline.memory_bytes == 0).await;
}
