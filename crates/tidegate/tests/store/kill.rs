//! Killed at any moment: nothing that was acknowledged is missing, and nothing counts twice.

use crate::place::run;
use crate::records::*;
use crate::support::folder::TempFolder;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tidegate::sequence::SeqStatus;
use tidegate::store::{Appended, FjallStore, PricedBatch, Store, UsageBy};

const FOLDER: &str = "TIDEGATE_TEST_KILLED_FOLDER";

/// Records a batch: so many that a commit takes a while and is likely to be hit.
const RECORDS: usize = 3_000;

const KILLS: u64 = 10;

fn numbered(seq: u64) -> PricedBatch {
    // Half of the minutes are new, so that sums are both made and changed.
    let time_ns = NOW_NS + (seq as i64 / 2) * MINUTE_NS;
    batch("a", seq, vec![at(record("acme", "tokens", &seq.to_string(), "1"), time_ns); RECORDS])
}

/// What is killed: appends from where the store is, and says each number that is durable.
async fn append_for_ever(folder: &Path) {
    let store = FjallStore::open(folder).await.unwrap();
    let mut seq = store.seen("a").await.unwrap().low();
    loop {
        seq += 1;
        // The one before was acknowledged perhaps, perhaps not: a sender would send it again.
        let again = (seq > 1).then(|| numbered(seq - 1));
        let outcomes = append(&store, again.into_iter().chain([numbered(seq)]).collect()).await;
        assert_eq!(outcomes.last(), Some(&Appended::New));
        println!("acked {seq}");
    }
}

/// Lets a child append until it has acknowledged something and a while has passed; the last number it said.
fn append_and_kill(folder: &Path, after: Duration) -> u64 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::a_store_survives_being_killed", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let (mut acked, mut started) = (0, None);
    for line in lines.by_ref() {
        let line = line.unwrap();
        // The test harness says its own things on the same line.
        let Some((_, number)) = line.split_once("acked ") else { continue };
        acked = number.parse().unwrap();
        if started.get_or_insert_with(Instant::now).elapsed() >= after {
            break;
        }
    }
    assert!(acked > 0, "the child ended before it acknowledged anything");
    child.kill().unwrap();
    child.wait().unwrap();
    // What it said before it died, and we had not read yet.
    let rest = lines.map_while(Result::ok);
    let numbers = rest.filter_map(|line| line.strip_prefix("acked ")?.parse().ok());
    numbers.fold(acked, u64::max)
}

#[test]
fn a_store_survives_being_killed() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        run(append_for_ever(Path::new(&folder)));
    }
    let folder = TempFolder::new("killed");
    for kill in 0..KILLS {
        // From the first commit on to well after sums and tables have been written.
        let acked = append_and_kill(folder.path(), Duration::from_millis(kill * kill * 12));
        run(async {
            let store = FjallStore::open(folder.path()).await.unwrap();
            let seen = store.seen("a").await.unwrap();
            assert_eq!(seen.status(acked), SeqStatus::Duplicate, "{acked} was acknowledged");
            let stored = seen.low();
            assert!(stored == acked || stored == acked + 1, "{stored} after {acked}");
            let rows = usage(&store, &all(UsageBy::Both)).await;
            assert_eq!(rows[0].records, stored * RECORDS as u64);
            let quantity = stored * (stored + 1) / 2 * RECORDS as u64;
            assert_eq!(rows[0].quantity, Some(quantity.into()));
            assert_eq!(count(&store).await, rows[0].records);
            store.close().await;
        });
    }
}
