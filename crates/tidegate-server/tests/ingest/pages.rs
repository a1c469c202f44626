//! Usage of many tenants, page by page.

use crate::http::Client;
use crate::support::{Peer, TestIngest, batch_of, record};
use std::time::{Duration, Instant};
use tidegate::MessageClass;

const TENANTS: usize = 20_000;
const ALL: &str = "from_ns=0&until_ns=9000000000000000000";

async fn page(ingest: &TestIngest, query: &str) -> (serde_json::Value, Duration) {
    let started = Instant::now();
    let answer = Client::new(ingest.admin).get(&format!("/v1/usage?{ALL}{query}")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    (answer.json(), started.elapsed())
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

#[tokio::test]
async fn usage_of_many_tenants_comes_in_pages_that_cost_what_they_have() {
    let ingest = TestIngest::start();
    let mut peer = Peer::named(ingest.frames, "s").await;
    for (number, first) in (0..TENANTS).step_by(1_000).enumerate() {
        let seq = number as u64 + 1;
        let records: Vec<_> =
            (first..first + 1_000).map(|n| record(&format!("t{n:05}"), 1)).collect();
        peer.send(&batch_of(MessageClass::Data, (seq, seq - 1), &records)).await;
        peer.acked(seq).await;
    }
    // A query without a limit gets the first page.
    let (first, _) = page(&ingest, "").await;
    let rows = first["rows"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[999]["tenant"]), (1_000, &"t00999".into()));
    let (mut query, mut names, mut pages) = ("&limit=3000".to_owned(), Vec::new(), 0);
    loop {
        let (body, _) = page(&ingest, &query).await;
        let rows = body["rows"].as_array().unwrap();
        assert!(rows.len() <= 3_000);
        names.extend(rows.iter().map(|row| row["tenant"].as_str().unwrap().to_owned()));
        pages += 1;
        match body["next"].as_str() {
            Some(next) => query = format!("&limit=3000&after={}", encoded(next)),
            None => break,
        }
    }
    // A page that takes longer than 3 s ends early, as it may on a busy machine.
    assert!(pages >= TENANTS.div_ceil(3_000), "{pages}");
    assert_eq!(names, (0..TENANTS).map(|n| format!("t{n:05}")).collect::<Vec<_>>());
    // A short page does not read what follows it.
    let (_, short) = page(&ingest, "&limit=10").await;
    let (_, long) = page(&ingest, "&limit=10000").await;
    assert!(short * 4 < long, "10 rows took {short:?}, and 10,000 {long:?}");
}
