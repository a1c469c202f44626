//! A disk that takes no more: appends are given back, and work again when there is room, in the same process.
//!
//! Two real ways to have no room. One limits how large a process may make its files, which needs a process of
//! its own but no rights. The other is a small file system, which needs the right to mount one.

use crate::place::run;
use crate::records::*;
use crate::support::folder::TempFolder;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};
use tidegate::store::{Appended, FjallStore, PricedBatch, Store, UsageBy};

const LIMITED: &str = "TIDEGATE_TEST_LIMITED_FOLDER";
const SMALL: &str = "TIDEGATE_TEST_SMALL_FOLDER";

/// Large enough to fill what a commit buffers, and hard to compress.
fn large(seq: u64) -> PricedBatch {
    let each = (0..2_000_u64).map(|number| {
        let mixed = (seq * 2_000 + number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut priced = record("acme", "tokens", "1", &format!("0.{mixed}"));
        priced.record.labels = format!("id={mixed:x}{:x}", mixed.rotate_left(17)).into();
        priced
    });
    batch("a", seq, each.collect())
}

/// Appends until it fails; then the first number that was not stored, which comes back whole.
async fn append_until_full(store: &FjallStore, mut seq: u64) -> u64 {
    loop {
        match store.append(vec![large(seq)]).await {
            Ok(outcomes) => assert_eq!(outcomes, [Appended::New]),
            Err(unstored) => {
                assert!(unstored.error.is_temporary(), "{}", unstored.error);
                assert_eq!(unstored.batches, [large(seq)]);
                return seq;
            }
        }
        seq += 1;
    }
}

async fn append_until_it_works(store: &FjallStore, seq: u64) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while let Err(unstored) = store.append(vec![large(seq)]).await {
        assert!(unstored.error.is_temporary(), "{}", unstored.error);
        assert!(Instant::now() < deadline, "{}", unstored.error);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn assert_stored(store: &FjallStore, through: u64) {
    assert_eq!(store.seen("a").await.unwrap().low(), through);
    let rows = usage(store, &all(UsageBy::Both)).await;
    assert_eq!(rows.iter().map(|row| row.records).sum::<u64>(), through * 2_000);
    assert_eq!(count(store).await, through * 2_000);
}

/// Runs one of these tests again in a process of its own, in the way that `runner` and its arguments say.
fn again(test: &str, runner: &[&str], variable: &str, folder: &Path) -> Output {
    Command::new(runner[0])
        .args(&runner[1..])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(variable, folder)
        .output()
        .unwrap()
}

fn assert_passed(output: &Output) {
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}\n{errors}");
}

fn limit_files(bytes: u64) {
    rlimit::setrlimit(rlimit::Resource::FSIZE, bytes, rlimit::INFINITY).unwrap();
}

#[test]
fn files_that_may_not_grow_stop_appends_only_for_a_while() {
    if let Some(folder) = std::env::var_os(LIMITED) {
        return run(while_files_may_not_grow(Path::new(&folder)));
    }
    let folder = TempFolder::new("limited");
    // A write beyond the limit is an error only for those who don't listen to the signal.
    let runner = ["sh", "-c", "trap '' XFSZ; exec \"$@\"", "runner"];
    let test = "disk_full::files_that_may_not_grow_stop_appends_only_for_a_while";
    assert_passed(&again(test, &runner, LIMITED, folder.path()));
}

async fn while_files_may_not_grow(folder: &Path) {
    let store = FjallStore::open(folder).await.unwrap();
    let mut seq = 1;
    for round in 0..3 {
        append(&store, vec![large(seq)]).await;
        limit_files(0);
        seq = append_until_full(&store, seq + 1).await;
        // It stays so, however often it is tried.
        for _ in 0..round * 2 {
            assert_eq!(append_until_full(&store, seq).await, seq);
        }
        limit_files(rlimit::INFINITY);
        append_until_it_works(&store, seq).await;
        assert_stored(&store, seq).await;
        seq += 1;
    }
    store.close().await;
    assert_stored(&FjallStore::open(folder).await.unwrap(), seq - 1).await;
}

#[test]
fn a_full_disk_stops_appends_only_for_a_while() {
    if let Some(folder) = std::env::var_os(SMALL) {
        return run(while_the_disk_is_full(Path::new(&folder)));
    }
    let folder = TempFolder::new("small");
    // In a mount namespace of its own, which goes with the process.
    let mount = "mount -t tmpfs -o size=24m tmpfs \"$0\" && exec \"$@\"";
    let shown = folder.path().to_str().unwrap();
    let test = "disk_full::a_full_disk_stops_appends_only_for_a_while";
    let ways: [&[&str]; 2] = [&["unshare", "-m", "--"], &["unshare", "-Urm", "--"]];
    let may = |way: &&[&str]| {
        let tried =
            Command::new(way[0]).args(&way[1..]).args(["sh", "-c", mount, shown, "true"]).output();
        tried.is_ok_and(|output| output.status.success())
    };
    let Some(way) = ways.into_iter().find(may) else {
        // The same promise is held to by the limit on files, which nobody needs rights for.
        return files_that_may_not_grow_stop_appends_only_for_a_while();
    };
    let runner = [way, &["sh", "-c", mount, shown]].concat();
    assert_passed(&again(test, &runner, SMALL, folder.path()));
}

async fn while_the_disk_is_full(folder: &Path) {
    let ballast = folder.join("ballast");
    let store = FjallStore::open(folder.join("store")).await.unwrap();
    let mut seq = 1;
    for room_mb in [8, 4, 12] {
        // Leave some room, fill it, and give all of it back.
        append(&store, vec![large(seq)]).await;
        fs::write(&ballast, vec![1; (20 - room_mb) << 20]).ok();
        seq = append_until_full(&store, seq + 1).await;
        // What the store tidies up meanwhile may make room for some more.
        seq = append_until_full(&store, seq).await;
        fs::remove_file(&ballast).unwrap();
        append_until_it_works(&store, seq).await;
        assert_stored(&store, seq).await;
        seq += 1;
        store.retain(i64::MAX - 1).await.ok();
        if count(&store).await == 0 {
            seq = 1;
        }
    }
}
