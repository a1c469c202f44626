//! How many may come at once, and what each may cost.

use crate::http::eventually;
use crate::support::{Peer, TestIngest, batch, lines_peer};
use tokio::io::AsyncReadExt;

#[tokio::test]
async fn one_too_many_is_turned_away_until_a_place_is_free() {
    let ingest = TestIngest::start_with(|config| config.connections_max = 2);
    let mut first = Peer::named(ingest.frames, "a").await;
    let second = Peer::named(ingest.frames, "b").await;
    Peer::connect(ingest.frames).await.closed().await;
    // Each protocol has its own places.
    let lines = [lines_peer(ingest.lines).await, lines_peer(ingest.lines).await];
    eventually("they are in", || ingest.stats().connections_lines == 2).await;
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
