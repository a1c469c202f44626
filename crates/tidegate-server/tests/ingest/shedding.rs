//! What is asked of senders is also held to: telemetry is shed before it is decoded, single records are refused,
//! and data never is.

use crate::http::eventually;
use crate::support::{Database, Peer, TestIngest, batch, batch_of, record};
use tidegate::MessageClass;
use tidegate::frame::RejectReason;
use tidegate::signal::BackpressureLevel;

#[tokio::test]
async fn telemetry_is_shed_at_reject_and_data_is_kept() {
    let database = Database::shared();
    let ingest = TestIngest::start_with(|config| config.store = database.url());
    let mut peer = Peer::named(ingest.frames, "a").await;
    let telemetry = |seq| {
        batch_of(MessageClass::Telemetry, (seq, 0), &[record("spared", 1), record("spared", 1)])
    };
    peer.send(&telemetry(1)).await;
    peer.acked(1).await;

    let blocked = database.block().await;
    peer.send(&batch("a", (2, 0), 2)).await;
    let level = || ingest.stats().pipeline.signal.level;
    eventually("REJECT", || level() == BackpressureLevel::Reject).await;
    let decoded = ingest.stats().counts.records;
    // Not decoded: what it holds would be refused for another reason.
    let mut garbage = telemetry(3).to_vec();
    let end = garbage.len();
    garbage[end - 4..].fill(0xff);
    for (seq, bytes) in [(3, garbage), (4, telemetry(4).to_vec())] {
        peer.send(&bytes).await;
        let reject = peer.reject().await;
        assert_eq!((reject.reason, reject.seq), (RejectReason::Overloaded, seq), "{reject:?}");
        assert!(reject.signal.drop_non_critical && reject.retry_after_ms.is_some(), "{reject:?}");
    }
    assert_eq!(ingest.stats().counts.records, decoded);
    peer.send(&batch("a", (5, 0), 1)).await;
    let reject = peer.reject().await;
    assert_eq!((reject.reason, reject.seq), (RejectReason::Unbatched, 5), "{reject:?}");
    assert!(reject.signal.batch_only && reject.retry_after_ms.is_some(), "{reject:?}");
    peer.send(&batch("a", (6, 0), 2)).await;
    assert_eq!((ingest.rejected("overloaded"), ingest.rejected("unbatched")), (2, 1));

    blocked.lift().await;
    let ack = peer.acked(6).await;
    assert!(ack.seqs.contains(2) || ingest.stored("a").await == 4);
    eventually("it is over", || level() == BackpressureLevel::None).await;
    for (seq, bytes) in [(4, telemetry(4)), (5, batch("a", (5, 0), 1))] {
        peer.send(&bytes).await;
        peer.acked(seq).await;
    }
    assert_eq!((ingest.stored("a").await, ingest.stored("spared").await), (5, 4));
}
