//! The database is gone and comes back: senders are held up, nobody is told a lie, and nothing is lost or doubled.

use crate::http::eventually;
use crate::shared::postgres::Postgres;
use crate::support::{Load, TestIngest};
use std::time::Duration;
use tokio::task::block_in_place;
use tokio::time::sleep;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_gone_for_a_while_holds_senders_up_and_costs_nothing_else() {
    let mut server = block_in_place(|| Postgres::start(&["synchronous_commit=off"]));
    let url = server.url("");
    let ingest = TestIngest::start_with(|config| config.store = url);
    let load = Load::start(ingest.frames, &["a", "b"]);
    for round in 1..=2 {
        let before = ingest.stats().counts.records_stored;
        let stored = || ingest.stats().counts.records_stored;
        eventually("records are stored", || stored() > before + 2_000).await;
        assert_eq!(ingest.get("/health/ready").await.0, 200);
        // At once, in the middle of whatever it does.
        block_in_place(|| server.stop());
        eventually("it notices", || !ingest.stats().pipeline.store_ok).await;
        let (status, body) = ingest.get("/health/ready").await;
        assert_eq!((status, body["status"].as_str()), (503, Some("store_unavailable")), "{body}");
        assert!(ingest.stats().counts.store_failures > 0);
        let (stored_then, connected) = (stored(), ingest.connections());
        // Senders fill what there is to fill, and then wait.
        let mut sent = 0;
        let held_up = || std::mem::replace(&mut sent, load.sent()) == load.sent();
        eventually_slowly("senders wait", held_up).await;
        let pipeline = ingest.stats().pipeline;
        assert!(pipeline.memory_bytes <= pipeline.budget_bytes, "{pipeline:?}");
        assert_eq!((stored(), ingest.connections()), (stored_then, connected), "round {round}");
        assert!(block_in_place(|| server.run()), "{}", server.log());
        eventually("it is back", || ingest.stats().pipeline.store_ok).await;
        assert_eq!(ingest.get("/health/ready").await.0, 200);
    }
    let sent = load.finish().await;
    assert_eq!([ingest.stored("a").await, ingest.stored("b").await], sent[..]);
}

async fn eventually_slowly(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..100 {
        sleep(Duration::from_millis(300)).await;
        if holds() {
            return;
        }
    }
    panic!("never came true: {what}");
}
