//! One name at two connections, and batches that come again.

use crate::http::eventually;
use crate::shared::folder::TempFolder;
use crate::support::{Database, Peer, Said, TestIngest, batch, batch_of, record};
use tidegate::MessageClass;
use tidegate::frame::RejectReason;

#[tokio::test]
async fn the_newest_connection_speaks_for_a_sender_and_nothing_is_lost_or_counted_twice() {
    let database = Database::shared();
    let ingest = TestIngest::start_with(|config| config.store = database.url());
    let mut first = Peer::named(ingest.frames, "a").await;
    first.send(&batch("a", (1, 0), 2)).await;
    first.acked(1).await;
    // What is under way when the second comes.
    let blocked = database.block().await;
    first.send(&batch("a", (2, 0), 2)).await;
    eventually("it is in", || ingest.stats().counts.records == 4).await;
    let mut second = Peer::connect(ingest.frames).await;
    second.send(&crate::support::hello("a")).await;
    let reject = loop {
        match first.next().await {
            Some(Said::Reject(reject)) => break reject,
            Some(_) => {}
            None => panic!("the first was closed without a word"),
        }
    };
    assert_eq!((reject.reason, reject.seq), (RejectReason::SenderTaken, 0));
    first.closed().await;
    // The second hears only when all that came before it is durable, so it knows where to go on.
    blocked.lift().await;
    let welcome = second.welcome().await;
    assert!(welcome.has(2), "{welcome:?}");
    assert_eq!(welcome.seen.unwrap().highest(), 2);
    second.send(&batch("a", (2, 0), 2)).await;
    second.acked(2).await;
    second.send(&batch("a", (3, 2), 2)).await;
    second.acked(3).await;
    assert_eq!(ingest.stored("a").await, 6);
    let counts = ingest.stats().counts;
    assert_eq!((counts.batches_repeated, counts.senders_superseded), (1, 1));
}

#[tokio::test]
async fn a_batch_that_comes_again_while_the_first_is_under_way_counts_once() {
    let database = Database::shared();
    let ingest = TestIngest::start_with(|config| config.store = database.url());
    let mut peer = Peer::named(ingest.frames, "a").await;
    let blocked = database.block().await;
    let copy = batch_of(MessageClass::Data, (1, 0), &[record("a", 5), record("a", 6)]);
    for _ in 0..3 {
        peer.send(&copy).await;
    }
    eventually("all copies are in", || ingest.stats().counts.records == 6).await;
    blocked.lift().await;
    peer.acked(1).await;
    eventually("the others are told", || ingest.stats().counts.batches_repeated == 2).await;
    let rows = ingest.usage().await;
    assert_eq!((rows[0].records, rows[0].quantity), (2, Some(11.into())));
}

/// A copy that was priced would use up the cheap tier, though it is not stored.
#[tokio::test]
async fn a_batch_that_comes_again_is_priced_once() {
    let tariffs = r#"
[[tariff]]
name = "tiers"
tenants = "*"
meter = "tokens"
period = "month"
tiers = [{ up_to = 10, price = "1" }, { price = "100" }]
"#;
    let folder = TempFolder::new("tariffs");
    let file = folder.path().join("tariffs.toml");
    std::fs::write(&file, tariffs).unwrap();
    let database = Database::shared();
    let ingest = TestIngest::start_with(|config| {
        config.store = database.url();
        config.tariffs = Some(file);
    });
    let mut peer = Peer::named(ingest.frames, "a").await;
    let blocked = database.block().await;
    let of_eight = |seq| batch_of(MessageClass::Data, (seq, 0), &[record("a", 3), record("a", 5)]);
    for seq in [1, 1, 1, 2, 1, 2] {
        peer.send(&of_eight(seq)).await;
    }
    eventually("all copies are in", || ingest.stats().counts.records == 12).await;
    blocked.lift().await;
    peer.acked(2).await;
    let rows = ingest.usage().await;
    assert_eq!((rows[0].records, rows[0].quantity), (4, Some(16.into())));
    // 10 at the first price, 6 at the second.
    assert_eq!(rows[0].amount, 610.into());
}

#[tokio::test]
async fn what_was_seen_is_remembered_over_a_restart() {
    let ingest = TestIngest::start();
    let mut peer = Peer::named(ingest.frames, "a").await;
    for seq in [1, 2, 4] {
        peer.send(&batch("a", (seq, 0), 2)).await;
        peer.acked(seq).await;
    }
    let ingest = ingest.restart().await;
    let mut peer = Peer::connect(ingest.frames).await;
    peer.send(&crate::support::hello("a")).await;
    let welcome = peer.welcome().await;
    assert_eq!([1, 2, 3, 4, 5].map(|seq| welcome.has(seq)), [true, true, false, true, false]);
    for seq in [2, 3, 4] {
        peer.send(&batch("a", (seq, 0), 2)).await;
        peer.acked(seq).await;
    }
    assert_eq!(ingest.stored("a").await, 8);
}
