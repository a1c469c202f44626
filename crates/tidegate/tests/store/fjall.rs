use crate::place::{Place, run};
use crate::records::*;
use crate::support::folder::TempFolder;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};
use tidegate::store::{
    AnyStore, Appended, FjallStore, PricedBatch, Store, StoreError, UsageBy, UsageQuery,
};

async fn refusal(folder: &Path) -> StoreError {
    FjallStore::open(folder).await.err().unwrap()
}

#[test]
fn a_folder_has_one_user_at_a_time() {
    run(async {
        let folder = TempFolder::new("locked");
        let store = FjallStore::open(folder.path()).await.unwrap();
        let error = refusal(folder.path()).await;
        assert!(error.is_temporary(), "{error}");
        let text = error.to_string();
        assert!(
            text.contains(folder.path().to_str().unwrap()) && text.contains("in use"),
            "{text}"
        );
        // It does not take `close`: a store that is dropped lets go of its folder too.
        drop(store);
        FjallStore::open(folder.path()).await.unwrap();
    });
}

#[test]
fn a_folder_is_its_users_alone() {
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    run(async {
        let folder = TempFolder::new("private");
        let new = folder.path().join("state/usage");
        FjallStore::open(&new).await.unwrap().close().await;
        assert_eq!((mode(&new), mode(new.parent().unwrap())), (0o700, 0o700));
        // One from before is closed.
        for (was, is) in [(0o755, 0o700), (0o777, 0o700), (0o700, 0o700)] {
            fs::set_permissions(&new, Permissions::from_mode(was)).unwrap();
            FjallStore::open(&new).await.unwrap().close().await;
            assert_eq!(mode(&new), is, "{was:o}");
        }
    });
}

#[test]
fn a_folder_of_something_else_is_left_alone() {
    run(async {
        let folder = TempFolder::new("foreign");
        fs::write(folder.path().join("thesis.txt"), "years of work").unwrap();
        let error = refusal(folder.path()).await;
        assert!(
            matches!(&error, StoreError::Unusable(text) if text.contains("thesis.txt")),
            "{error}"
        );
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    });
}

#[test]
fn a_newer_version_is_not_touched() {
    run(async {
        let folder = TempFolder::new("newer");
        FjallStore::open(folder.path()).await.unwrap().close().await;
        for (written, expected) in
            [("tidegate store 2\n", "version 2"), ("?", "another program"), ("", "another program")]
        {
            fs::write(folder.path().join("version"), written).unwrap();
            let error = refusal(folder.path()).await;
            assert!(
                matches!(&error, StoreError::Unusable(text) if text.contains(expected)),
                "{error}"
            );
        }
        fs::write(folder.path().join("version"), "tidegate store 1\n").unwrap();
        FjallStore::open(folder.path()).await.unwrap();
    });
}

#[test]
fn a_start_that_was_killed_is_begun_again() {
    run(async {
        let folder = TempFolder::new("half");
        // What may be there before the engine's folder has its name.
        fs::write(folder.path().join("lock"), "").unwrap();
        fs::write(folder.path().join("version.new"), "tide").unwrap();
        let store = FjallStore::open(folder.path()).await.unwrap();
        append(&store, vec![one("a", 1)]).await;
        store.close().await;
        let half = folder.path().join("data.new");
        fs::create_dir(&half).unwrap();
        fs::write(half.join("0.jnl"), "half").unwrap();
        let store = FjallStore::open(folder.path()).await.unwrap();
        assert_eq!(count(&store).await, 1);
        store.close().await;
        fs::remove_dir_all(folder.path().join("data")).unwrap();
        let store = FjallStore::open(folder.path()).await.unwrap();
        assert_eq!(count(&store).await, 0);
    });
}

#[test]
fn a_file_is_no_folder() {
    run(async {
        let folder = TempFolder::new("file");
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(refusal(&file).await.to_string().contains(file.to_str().unwrap()));
        let error = AnyStore::open("sqlite://x").await.err().unwrap();
        assert!(
            matches!(&error, StoreError::Unusable(text) if text.contains("sqlite://")),
            "{error}"
        );
    });
}

/// Enough appends that sums are written to the engine several times, and tables too.
#[test]
fn sums_are_the_same_before_and_after_they_are_written() {
    run(async {
        let place = Place::folder();
        let mut store = place.open().await;
        let mut records = 0;
        for seq in 1..=60 {
            let tenants = (0..400).map(|number| format!("tenant-{}", (seq * 7 + number) % 1_000));
            let each = tenants.map(|tenant| {
                at(record(&tenant, "tokens", "1", "0.25"), NOW_NS + seq as i64 * 20_000_000_000)
            });
            append(&store, vec![batch("a", seq, each.collect())]).await;
            records += 400;
            if seq % 20 == 0 {
                store.close().await;
                store = place.open().await;
            }
            let rows = usage(&store, &all(UsageBy::Meter)).await;
            assert_eq!((rows[0].records, rows[0].quantity), (records, Some(records.into())));
            assert_eq!(rows[0].amount, number("0.25") * number(&records.to_string()));
        }
        let rows = usage(&store, &UsageQuery::new(UsageBy::Tenant, NOW_NS, i64::MAX)).await;
        assert_eq!(rows.len(), 813);
        assert_eq!(count(&store).await, records);
    });
}

/// A page over all tenants reads their totals. Walking all tenants is what it did before.
#[test]
fn a_sum_of_all_tenants_does_not_read_each_of_them() {
    run(async {
        let place = Place::folder();
        let store = place.open().await;
        for seq in 1..=10 {
            let records =
                (0..2_000).map(|number| record(&format!("t{seq}-{number}"), "tokens", "1", "0.5"));
            append(&store, vec![batch("a", seq, records.collect())]).await;
        }
        // What is in memory is written when the store is closed.
        store.close().await;
        let store = place.open().await;
        let started = Instant::now();
        assert_eq!(usage(&store, &all(UsageBy::Tenant)).await.len(), 20_000);
        let by_tenant = started.elapsed();
        for by in [UsageBy::Meter, UsageBy::Client] {
            let started = Instant::now();
            let rows = usage(&store, &all(by)).await;
            let took = started.elapsed();
            assert_eq!((rows.len(), rows[0].records), (1, 20_000));
            assert!(took < by_tenant / 20, "{by:?}: {took:?}, and {by_tenant:?} by tenant");
        }
    });
}

/// Small appends are many blocks: they too must not pile up in what a start has to read again.
#[test]
fn many_small_appends_are_all_counted() {
    run(async {
        let place = Place::folder();
        let store = std::sync::Arc::new(place.open().await);
        let tasks = (0..32).map(|task: u64| {
            let store = store.clone();
            tokio::spawn(async move {
                for seq in 1..=100 {
                    let outcomes = append(&*store, vec![one(&format!("s{task}"), seq)]).await;
                    assert_eq!(outcomes, [Appended::New]);
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        assert_eq!(count(&*store).await, 3_200);
        std::sync::Arc::into_inner(store).unwrap().close().await;
        assert_eq!(count(&place.open().await).await, 3_200);
    });
}

/// The sums of 100,000 new series are written between appends: a small append never waits for all of them. Times
/// are compared with those of large appends in the same run, from before the first sums are written, and with
/// small appends to a store that has few series, in turn with the others: a busy machine or disk delays both.
#[test]
fn small_appends_do_not_wait_for_the_sums_of_new_series() {
    run(async {
        let places = [Place::folder(), Place::folder()];
        let (many, few) = (places[0].open().await, places[1].open().await);
        let (mut large, mut small, mut control) = (Vec::new(), Vec::new(), Vec::new());
        for seq in 1..=100 {
            let of_series = |of: u64| {
                let new = (0..1_000).map(|n| record(&format!("{of}-{n}"), "tokens", "1", "1"));
                vec![batch("a", seq, new.collect())]
            };
            append(&few, of_series(0)).await;
            control.push(timed(append(&few, vec![one("b", seq)])).await);
            large.push(timed(append(&many, of_series(seq))).await);
            small.push(timed(append(&many, vec![one("b", seq)])).await);
        }
        large.truncate(15);
        for times in [&mut large, &mut small, &mut control] {
            times.sort();
        }
        // Two may have met a slow disk: at least five times enough has accumulated for the sums to be written.
        let (median, worst, usual) = (large[7], small[97], control[97]);
        eprintln!("{median:?} for a large append; small ones to {worst:?}, and {usual:?}");
        assert!(worst < 5 * median.max(usual), "{worst:?} beside {median:?} and {usual:?}");
        assert_eq!(count(&many).await, 100_100);
    });
}

async fn timed<T>(work: impl Future<Output = T>) -> Duration {
    let started = Instant::now();
    work.await;
    started.elapsed()
}

/// A caller that leaves while its batches wait has stored them or not, as a whole.
#[test]
fn an_append_that_is_dropped_is_whole_or_nothing() {
    run(async {
        let place = Place::folder();
        let store = place.open().await;
        for seq in 1..=50 {
            let records = vec![record("acme", "tokens", "1", "1"); 1_000];
            let append = store.append(vec![batch("a", seq, records)]);
            let _ = tokio::time::timeout(std::time::Duration::from_micros(seq * 40), append).await;
        }
        let repeat: Vec<PricedBatch> = (1..=50)
            .map(|seq| batch("a", seq, vec![record("acme", "tokens", "1", "1"); 1_000]))
            .collect();
        let before = append(&store, repeat).await;
        assert!(before.contains(&Appended::Repeat));
        assert_eq!((count(&store).await, store.seen("a").await.unwrap().low()), (50_000, 50));
    });
}

/// A power cut while a commit is written may leave any page of it out: the disk writes them in any order.
#[test]
fn a_commit_that_a_power_cut_tore_is_as_if_it_never_was() {
    const PAGE: usize = 4096;
    run(async {
        let folder = TempFolder::new("torn");
        let journal = folder.path().join("data/0.jnl");
        let open = || async { FjallStore::open(folder.path()).await.unwrap() };
        let store = open().await;
        append(&store, vec![one("a", 1), one("a", 2)]).await;
        store.close().await;
        let before = end_of(&fs::read(&journal).unwrap());
        let store = open().await;
        let large = (0..3_000_u64).map(|number| {
            let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            record(&format!("tenant-{mixed:x}"), "tokens", &mixed.to_string(), "1")
        });
        append(&store, vec![batch("a", 3, large.collect())]).await;
        store.close().await;
        let whole = fs::read(&journal).unwrap();
        let pages = before / PAGE..end_of(&whole).div_ceil(PAGE);
        assert!(pages.len() > 10);
        for page in pages {
            let mut torn = whole.clone();
            let end = ((page + 1) * PAGE).min(torn.len());
            torn[(page * PAGE).max(before)..end].fill(0);
            fs::write(&journal, &torn).unwrap();
            let opened = FjallStore::open(folder.path()).await;
            let store = opened.unwrap_or_else(|error| panic!("page {page} is missing: {error}"));
            let low = store.seen("a").await.unwrap().low();
            assert_eq!((count(&store).await, low), (2, 2), "page {page} is missing");
            store.close().await;
        }
        let store = open().await;
        assert_eq!(append(&store, vec![one("a", 3)]).await, [Appended::New]);
        assert_eq!(count(&store).await, 3);
    });
}

/// Where what was written to a file of a fixed size ends.
fn end_of(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1
}
