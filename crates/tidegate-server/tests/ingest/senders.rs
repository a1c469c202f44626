//! One name at two connections, and batches that come again.

use crate::http::eventually;
use crate::shared::folder::TempFolder;
use crate::support::{
    Database, Peer, Said, TestIngest, batch, batch_of, hello, hello_with, record,
};
use crate::tokens::{A, B, CLIENTS};
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

#[tokio::test]
async fn a_name_belongs_to_the_client_that_first_used_it() {
    let database = Database::shared();
    for url in [None, Some(database.url())] {
        let ingest = TestIngest::start_as(CLIENTS, |config| {
            config.store = url.unwrap_or(config.store.clone());
        });
        let mut owner = Peer::with_token(ingest.frames, "s", A).await;
        owner.send(&batch("a", (1, 0), 1)).await;
        owner.acked(1).await;
        Peer::named(ingest.frames, "open").await.send(&batch("a", (1, 0), 1)).await;
        eventually("it is stored", || ingest.stats().counts.records_stored == 2).await;
        let ingest = ingest.restart().await;
        let mut owner = Peer::with_token(ingest.frames, "s", A).await;
        // Whoever shows another token, or none, neither speaks for the name nor ends who does.
        for greeting in [hello_with("s", B), hello("s"), hello_with("open", A)] {
            let mut thief = Peer::connect(ingest.frames).await;
            thief.send(&greeting).await;
            let reject = thief.reject().await;
            assert_eq!((reject.reason, reject.seq), (RejectReason::SenderOwned, 0));
            assert!(reject.message.contains("name of your own"), "{}", reject.message);
            thief.closed().await;
        }
        owner.send(&batch("a", (2, 1), 1)).await;
        owner.acked(2).await;
        assert_eq!(ingest.stored("a").await, 3);
        assert_eq!(ingest.rejected("sender_owned"), 3);
        // A name without batches is free again when its connection is gone.
        drop(Peer::with_token(ingest.frames, "free", A).await);
        eventually("it is gone", || ingest.connections() == 1).await;
        Peer::with_token(ingest.frames, "free", B).await;
    }
}

/// Afterwards each batch of the sender would be acked as a repeat, and not stored.
#[tokio::test]
async fn a_number_that_skips_more_than_can_be_under_way_is_refused() {
    let ingest = TestIngest::start();
    let mut peer = Peer::named(ingest.frames, "s").await;
    peer.send(&batch("a", (1, 0), 1)).await;
    peer.acked(1).await;
    for last in [u64::MAX, 1 << 62, 1 + 1_024 + 2] {
        peer.send(&batch("a", (last, last - 1), 1)).await;
        let reject = peer.reject().await;
        assert_eq!((reject.reason, reject.seq), (RejectReason::SeqJump, last));
        assert_eq!(reject.retry_after_ms, None);
    }
    // Not by the first batch of a connection either, nor by one that is rejected anyway.
    let mut peer = Peer::named(ingest.frames, "s").await;
    peer.send(&batch("a", (u64::MAX, u64::MAX - 1), 1)).await;
    assert_eq!(peer.reject().await.reason, RejectReason::SeqJump);
    let wrong_class = batch_of(MessageClass::Control, (u64::MAX, u64::MAX - 1), &[]);
    peer.send(&wrong_class).await;
    assert_eq!(peer.reject().await.reason, RejectReason::ClassRefused);
    peer.send(&batch("a", (u64::MAX, u64::MAX - 1), 1)).await;
    assert_eq!(peer.reject().await.reason, RejectReason::SeqJump);
    peer.send(&batch("a", (2, 1), 1)).await;
    peer.acked(2).await;
    assert_eq!(ingest.stored("a").await, 2);
    assert_eq!(ingest.rejected("seq_jump"), 5);
}

#[tokio::test]
async fn a_restarted_sender_begins_anew_and_rejected_batches_leave_no_gap() {
    let ingest = TestIngest::start();
    let mut peer = Peer::named(ingest.frames, "s").await;
    peer.send(&batch("a", (1, 0), 1)).await;
    peer.acked(1).await;
    // A program that has not stored its numbers continues with the time.
    let now = 1_790_000_000_000_000_000;
    let mut peer = Peer::named(ingest.frames, "s").await;
    peer.send(&batch("a", (now, now - 1), 1)).await;
    peer.acked(now).await;
    // More batches than the window that are rejected, and settled afterwards.
    for seq in now + 1..=now + 1_500 {
        let unknown = batch_of(MessageClass::Control, (seq, seq - 1), &[]);
        peer.send(&unknown).await;
        assert_eq!(peer.reject().await.seq, seq);
    }
    peer.send(&batch("a", (now + 1_501, now + 1_500), 1)).await;
    peer.acked(now + 1_501).await;
    assert_eq!(ingest.stored("a").await, 3);
}
