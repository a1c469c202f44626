//! Folders as a power cut leaves them while a checkpoint is written: every record counts once.
//!
//! Slices of a checkpoint are not synced. A cut takes any part of the journal that was written after its last
//! sync. It takes no table: the engine syncs the journal before it writes one, so that a table never has a slice
//! that the journal has not.

use super::checkpoint::{self, SLICE_TALLIES};
use super::writer::UsageWriter;
use crate::storage::fjall::{Folder, Writer as _};
use crate::store::series::SeriesLimits;
use crate::store::{Origin, PricedBatch, UsageBy, UsageQuery};
use fjall::{Keyspace, PersistMode};
use rust_decimal::Decimal;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::usage::{Currency, PricedRecord, UsageCharge, UsageRecord};

const TENANTS: usize = 4 * SLICE_TALLIES + 10;

/// Cuts of a slice, in bytes before its end: none, the mark of the end, and the rows of the log, which are the
/// last.
const FROM_END: [usize; 5] = [0, 1, 20, 45, 80];

/// A folder that goes with its test.
struct TestFolder(PathBuf);

impl TestFolder {
    fn new(name: &str) -> Self {
        let name = format!("tidegate-cut-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn open(&self) -> UsageWriter {
        UsageWriter::open(Folder::take(&self.0, UsageWriter::KIND).unwrap()).unwrap()
    }

    /// The file that commits are written to.
    fn journal(&self) -> PathBuf {
        self.0.join("data/0.jnl")
    }

    /// A copy as it is now.
    fn copy(&self, name: &str) -> Self {
        let copy = Self::new(name);
        // A file that is removed meanwhile makes it a copy of no one time: then it begins again.
        while let Err(error) = copy_all(&self.0, &copy.0) {
            assert_eq!(error.kind(), io::ErrorKind::NotFound, "{error}");
            fs::remove_dir_all(&copy.0).unwrap();
        }
        copy
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        match path.is_dir() {
            true => copy_all(&path, &to.join(name))?,
            false => drop(fs::copy(&path, to.join(name))?),
        }
    }
    Ok(())
}

/// One record of each tenant.
fn batch(seq: u64) -> PricedBatch {
    let priced = |number: usize| PricedRecord {
        record: UsageRecord {
            tenant: format!("tenant-{number}").into(),
            meter: Arc::from("tokens"),
            quantity: Decimal::ONE,
            time_ns: 0,
            labels: Arc::from(""),
        },
        charge: UsageCharge {
            amount: Decimal::ONE,
            currency: Currency::USD,
            tariff: Arc::from("standard"),
            fallback: None,
        },
    };
    let origin = Origin { sender: Arc::from("a"), owner: None, seq, settled: 0 };
    let records = (0..TENANTS).map(priced).collect();
    PricedBatch { origin: Some(origin), source: Arc::from("a"), records }
}

/// A store with sums of one batch, and a checkpoint of a second one that has begun.
fn begun(folder: &TestFolder) -> UsageWriter {
    let mut writer = folder.open();
    writer.append(&[&batch(1)], SeriesLimits::default()).unwrap();
    writer.retain(i64::MIN).unwrap();
    writer.append(&[&batch(2)], SeriesLimits::default()).unwrap();
    checkpoint::begin(&writer.database.view, &mut writer.database.progress);
    writer
}

/// Writes what the engine has of the journal in its memory to the file, without a sync.
fn hand_over(writer: &UsageWriter) {
    let engine = writer.database.view.read().engine().unwrap();
    engine.db.persist(PersistMode::Buffer).unwrap();
}

/// Ends a table of a keyspace, and waits until it is written.
fn write_table(keyspace: &Keyspace) {
    assert!(keyspace.rotate_memtable().unwrap(), "there is something to write");
    while keyspace.sealed_memtable_count() > 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Two records of each tenant, also after the rest of the checkpoint was written.
fn assert_counted_once(folder: &TestFolder, when: &str) {
    let mut writer = folder.open();
    for then in ["opened", "with all sums"] {
        let query = UsageQuery::new(UsageBy::Tenant, i64::MIN, i64::MAX);
        let page = super::read::usage(&writer.database.view, &query).unwrap();
        let counts: Vec<_> = page.rows.iter().map(|row| row.records).collect();
        assert_eq!(counts, [2; TENANTS], "{when}, {then}");
        writer.retain(i64::MIN).unwrap();
    }
}

/// Where the contents of a file of a fixed size end.
fn end_of(path: &Path) -> usize {
    fs::read(path).unwrap().iter().rposition(|byte| *byte != 0).unwrap() + 1
}

#[test]
fn a_cut_in_any_slice_of_a_checkpoint_counts_nothing_twice() {
    let folder = TestFolder::new("journal");
    let mut writer = begun(&folder);
    hand_over(&writer);
    let mut ends = vec![end_of(&folder.journal())];
    while writer.continue_checkpoint().unwrap() {
        hand_over(&writer);
        ends.push(end_of(&folder.journal()));
    }
    assert_eq!(ends.len(), 6, "five slices");
    for (slice, range) in ends.windows(2).enumerate() {
        let middle = (range[0] + range[1]) / 2;
        let cuts = FROM_END.map(|bytes| range[1] - bytes).into_iter().chain([middle]);
        for cut in cuts {
            let copy = folder.copy("journal-copy");
            let journal = fs::File::options().write(true).open(copy.journal()).unwrap();
            journal.set_len(cut as u64).unwrap();
            let when = format!("slice {slice} of {range:?} is cut at {cut}");
            assert_counted_once(&copy, &when);
        }
    }
}

#[test]
fn tables_of_a_checkpoint_that_is_not_finished_count_nothing_twice() {
    for slices in 1..=5 {
        let folder = TestFolder::new("tables");
        let mut writer = begun(&folder);
        for _ in 0..slices {
            assert!(writer.continue_checkpoint().unwrap());
        }
        hand_over(&writer);
        let engine = writer.database.view.read().engine().unwrap();
        for keyspace in [&engine.sums, &engine.log] {
            write_table(keyspace);
            let when = format!("{slices} slices, a table of {:?}", keyspace.name());
            assert_counted_once(&folder.copy("tables-copy"), &when);
        }
    }
}
