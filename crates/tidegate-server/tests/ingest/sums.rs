//! Numbers so large that their sum is none.

use crate::http::{Client, eventually};
use crate::shared::folder::TempFolder;
use crate::support::{Peer, TestIngest, batch, batch_of, lines_peer, record};
use tidegate::MessageClass;
use tidegate::frame::RejectReason;
use tokio::io::AsyncWriteExt as _;

/// The largest decimal number.
const LARGEST: &str = "79228162514264337593543950335";

#[tokio::test]
async fn a_record_that_overflows_a_sum_is_refused_by_name_and_counted() {
    let ingest = TestIngest::start();
    let mut peer = Peer::named(ingest.frames, "s").await;
    let mut largest = record("a", 1);
    largest.quantity = LARGEST.parse().unwrap();
    for seq in [1, 2] {
        peer.send(&batch_of(MessageClass::Data, (seq, 0), &[record("a", 0), largest.clone()]))
            .await;
    }
    peer.acked(1).await;
    let reject = peer.reject().await;
    assert_eq!((reject.reason, reject.seq), (RejectReason::SumOverflow, 2));
    assert_eq!(reject.retry_after_ms, None);
    peer.send(&batch("b", (3, 2), 1)).await;
    peer.acked(3).await;
    // Of lines, only the record itself.
    let mut lines = lines_peer(ingest.lines).await;
    let text = "tokens,tenant=c value=1 1700000000000000000\n\
                tokens,tenant=a value=79228162514264337593543950335 1700000000000000000\n\
                tokens,tenant=b value=2 1700000000000000000\n";
    lines.write_all(text.as_bytes()).await.unwrap();
    eventually("the others are stored", || ingest.stats().counts.records_stored == 5).await;
    assert_eq!(ingest.rejected("sum_overflow"), 2);
    let rows = ingest.usage().await;
    let told: Vec<_> = rows.iter().map(|row| (row.records, row.quantity, row.overflow)).collect();
    let expected =
        [(2, largest.quantity), (2, 3.into()), (1, 1.into())].map(|(n, sum)| (n, Some(sum), false));
    assert_eq!(told, expected);
    let page = Client::new(ingest.admin).get("/metrics").await;
    let metrics = page.text();
    assert!(metrics.contains("reason=\"sum_overflow\"} 1"), "{metrics}");
}

/// A record that is refused after it was priced would use up the cheap tier.
#[tokio::test]
async fn a_refused_batch_does_not_count_for_tiers() {
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
    let ingest = TestIngest::start_with(|config| config.tariffs = Some(file));
    let mut peer = Peer::named(ingest.frames, "s").await;
    let mut largest = record("b", 1);
    largest.quantity = LARGEST.parse().unwrap();
    peer.send(&batch_of(MessageClass::Data, (1, 0), std::slice::from_ref(&largest))).await;
    peer.acked(1).await;
    peer.send(&batch_of(MessageClass::Data, (2, 0), &[record("a", 8), largest])).await;
    assert_eq!(peer.reject().await.reason, RejectReason::SumOverflow);
    peer.send(&batch_of(MessageClass::Data, (3, 2), &[record("a", 8)])).await;
    peer.acked(3).await;
    assert_eq!(ingest.usage().await[0].amount, 8.into());
}
