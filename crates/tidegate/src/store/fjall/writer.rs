use super::checkpoint::{Due, SLICE_TALLIES};
use super::encoded::Encoded;
use super::engine::Engine;
use super::key::DAY_NS;
use super::series::PendingSeries;
use super::{checkpoint, key, retain, series};
use crate::storage::fjall::{Database, Engine as _, Folder, Kind, Reply, Writer};
use crate::store::day_sums::large_keys;
use crate::store::decide::{StoredSender, Windows, decide, senders};
use crate::store::series::{KnownSeries, NewSeries, SeriesLimits};
use crate::store::tally::floor;
use crate::store::{Appended, PricedBatch, StoreError};
use fjall::PersistMode;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

/// Appends that wait are committed together, up to so many records: one sync for all.
const GROUP_RECORDS: usize = 64 * 1024;

/// Number of senders' windows in memory: about 1 MB.
const WINDOWS_MAX: usize = 4096;

/// A request to the writer.
pub(super) enum Request {
    Append(Append),
    Retain { before_ns: i64, reply: Reply<u64> },
}

/// Batches to append. The caller shares them, so that they can be returned in any case.
pub(super) struct Append {
    pub(super) batches: Arc<Vec<PricedBatch>>,
    pub(super) limits: SeriesLimits,
    pub(super) reply: Reply<Vec<(Appended, u64)>>,
}

/// The writer of a usage store.
pub(super) struct UsageWriter {
    pub(super) database: Database<Engine>,
    windows: HashMap<Arc<str>, StoredSender>,
    series: KnownSeries,
    pending: PendingSeries,
    /// Number of sums that the checkpoint under way has to write before the next large append.
    owed: usize,
    /// The opening of the database that `windows` and `series` belong to.
    windows_opening: u64,
}

// === impl UsageWriter ===

impl Writer for UsageWriter {
    type Engine = Engine;
    type Request = Request;

    const KIND: Kind = Kind { title: "tidegate store", version: 1 };
    const THREAD: &'static str = "tidegate-store";
    const REQUESTS_MAX: usize = 64;

    fn open(folder: Folder) -> Result<Self, StoreError> {
        let database = Database::open(folder, None)?;
        Ok(Self {
            database,
            windows: HashMap::new(),
            series: KnownSeries::default(),
            pending: PendingSeries::new(),
            owed: 0,
            windows_opening: 0,
        })
    }

    fn database(&mut self) -> &mut Database<Engine> {
        &mut self.database
    }

    fn serve(mut self, mut requests: mpsc::Receiver<Request>) {
        let mut waiting = None;
        while let Some(request) = waiting.take().or_else(|| self.next(&mut requests)) {
            match request {
                Request::Append(first) => {
                    let (group, next) = collect(first, &mut requests);
                    waiting = next;
                    self.append_group(group);
                }
                Request::Retain { before_ns, reply } => {
                    let _ = reply.send(self.guarded(|writer| writer.retain(before_ns)));
                }
            }
        }
        if let Err(error) = self.guarded(Self::finish_checkpoint) {
            tracing::debug!(%error, "sums are written after the next start");
        }
    }
}

impl UsageWriter {
    /// The next request. While there is none, a checkpoint under way is continued.
    fn next(&mut self, requests: &mut mpsc::Receiver<Request>) -> Option<Request> {
        loop {
            match requests.try_recv() {
                Ok(request) => return Some(request),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => {}
            }
            match self.guarded(Self::continue_checkpoint) {
                Ok(true) => {}
                Ok(false) => return requests.blocking_recv(),
                Err(error) => {
                    tracing::debug!(%error, "sums are written the next time");
                    return requests.blocking_recv();
                }
            }
        }
    }

    fn append_group(&mut self, group: Vec<Append>) {
        let records = group.iter().map(Append::records).sum::<usize>();
        if records > SLICE_TALLIES
            && let Err(error) = self.guarded(Self::pay)
        {
            tracing::debug!(%error, "sums are written the next time");
        }
        let before = self.database.view.read().summary.len();
        let result = self.guarded(|writer| {
            let batches: Vec<_> = group.iter().flat_map(|append| append.batches.iter()).collect();
            // All of a store have the same.
            let limits = group.first().map(|append| append.limits).unwrap_or_default();
            writer.append(&batches, limits)
        });
        let mut outcomes = result.map(Vec::into_iter);
        for Append { batches, reply, .. } in group {
            let answer = match &mut outcomes {
                Ok(outcomes) => Ok(outcomes.take(batches.len()).collect()),
                Err(error) => Err(error.clone()),
            };
            // Before the answer, so that the caller is the only one to hold them.
            drop(batches);
            let _ = reply.send(answer);
        }
        // The appends are durable: their senders do not wait for the sums.
        let added = self.database.view.read().summary.len().saturating_sub(before);
        if let Err(error) = self.guarded(|writer| writer.checkpoint(added)) {
            tracing::debug!(%error, "sums are written the next time");
        }
    }

    pub(super) fn append(
        &mut self,
        batches: &[&PricedBatch],
        limits: SeriesLimits,
    ) -> Result<Vec<(Appended, u64)>, StoreError> {
        let engine = self.database.engine_with_room()?;
        let mut windows = self.windows_of(&engine, batches)?;
        let keys = large_keys(batches.iter().copied());
        let mut sums = super::read::day_sums(&engine, &self.database.view, keys)?;
        let mut guard = series::guard(&engine, limits, (&self.series, &self.pending), batches)?;
        let outcomes = decide(batches.iter().copied(), &mut windows, |batch| {
            let new = guard.check(batch)?;
            let count = new.len() as u64;
            sums.add(batch)?;
            guard.begin(batch, new);
            Ok(count)
        });
        let new_series = guard.finish();
        let new = batches.iter().zip(&outcomes).filter(|(_, outcome)| outcome.0 == Appended::New);
        let encoded = Encoded::new(new.map(|(batch, _)| *batch));
        let nothing = encoded.blocks.is_empty() && windows.changed().next().is_none();
        if nothing {
            return Ok(outcomes);
        }
        let commit = self.database.progress.commit + 1;
        match self.commit(&engine, &encoded, &windows, &new_series) {
            Ok(()) => {
                self.committed(encoded, &windows);
                self.pending.extend(new_series.new.clone());
                self.series.add(new_series.into_known());
                Ok(outcomes)
            }
            Err(error) => {
                drop(engine);
                self.database.find_out(commit, error).map(|()| outcomes)
            }
        }
    }

    fn commit(
        &self,
        engine: &Engine,
        encoded: &Encoded,
        windows: &Windows,
        new_series: &NewSeries,
    ) -> Result<(), StoreError> {
        let mut batch = engine.db.batch().durability(Some(PersistMode::SyncData));
        let progress = &self.database.progress;
        let mut number = progress.next_block;
        for (max_ns, bytes) in &encoded.blocks {
            let block_key = key::block(*max_ns, number);
            batch.insert(&engine.blocks, block_key, bytes.as_slice());
            batch.insert(&engine.log, key::behind(number), block_key);
            number += 1;
        }
        let now = now_ns();
        for (sender, stored) in windows.changed() {
            let value = key::encode_sender(now, stored);
            batch.insert(&engine.senders, key::sender(sender), value);
        }
        series::write_counts(engine, new_series, &mut batch);
        let state = [(progress.commit + 1).to_be_bytes(), number.to_be_bytes()].concat();
        batch.insert(&engine.log, key::STATE, state);
        batch.commit().map_err(|error| engine.trouble(&error))
    }

    fn committed(&mut self, encoded: Encoded, windows: &Windows) {
        let progress = &mut self.database.progress;
        progress.commit += 1;
        for _ in &encoded.blocks {
            progress.behind.push(progress.next_block);
            progress.next_block += 1;
        }
        progress.records_behind += encoded.records;
        self.database.synced = progress.commit;
        for (sender, window) in windows.changed() {
            self.windows.insert(sender.clone(), window.clone());
        }
        if self.windows.len() > WINDOWS_MAX {
            self.windows.clear();
        }
        self.database.view.write().summary.merge(encoded.tallies);
    }

    /// Begins a checkpoint if one is due, and writes what must not wait until there are no requests. The append
    /// is durable already: a failure here concerns the next one.
    fn checkpoint(&mut self, added: usize) -> Result<(), StoreError> {
        let engine = self.database.engine()?;
        self.refresh(&engine)?;
        let Database { view, progress, .. } = &mut self.database;
        checkpoint::begin_if_due(&engine, view, progress);
        let due = checkpoint::due(progress, &view.read().summary, added);
        match due {
            Due::Nothing => Ok(()),
            Due::All => self.finish_checkpoint(),
            Due::Tallies(count) => {
                self.owed += count;
                self.continue_checkpoint().map(drop)
            }
        }
    }

    /// Writes the slices that appends before owe. Small appends do not pay: they add no more than a slice writes.
    fn pay(&mut self) -> Result<(), StoreError> {
        while self.owed > 0 && self.continue_checkpoint()? {}
        self.owed = 0;
        Ok(())
    }

    /// Writes a slice of the checkpoint under way. False if there is none, or no room for it.
    pub(super) fn continue_checkpoint(&mut self) -> Result<bool, StoreError> {
        if self.database.progress.checkpoint.is_none() {
            return Ok(false);
        }
        let engine = self.database.engine()?;
        self.refresh(&engine)?;
        if !engine.tables().has_all_room() {
            return Ok(false);
        }
        let Database { view, progress, .. } = &mut self.database;
        checkpoint::write_slice(&engine, view, progress, &mut self.pending)
            .inspect_err(|error| self.database.close(error))?;
        self.owed = self.owed.saturating_sub(SLICE_TALLIES);
        Ok(true)
    }

    fn finish_checkpoint(&mut self) -> Result<(), StoreError> {
        if self.database.progress.checkpoint.is_none() {
            return Ok(());
        }
        let engine = self.database.engine()?;
        self.refresh(&engine)?;
        let Database { view, progress, .. } = &mut self.database;
        checkpoint::finish(&engine, view, progress, &mut self.pending)
            .inspect_err(|error| self.database.close(error))
    }

    /// Reads what depends on the opening of the database again, if it was opened again.
    fn refresh(&mut self, engine: &Engine) -> Result<(), StoreError> {
        if self.windows_opening == self.database.openings() {
            return Ok(());
        }
        self.windows.clear();
        self.series.clear();
        let before = std::mem::take(&mut self.pending);
        self.pending = series::pending(engine, &self.database.view.read().summary, before)?;
        self.windows_opening = self.database.openings();
        Ok(())
    }

    fn windows_of(
        &mut self,
        engine: &Engine,
        batches: &[&PricedBatch],
    ) -> Result<Windows, StoreError> {
        self.refresh(engine)?;
        let mut known = Vec::new();
        for sender in senders(batches.iter().copied()) {
            let window = match self.windows.get(&sender) {
                Some(window) => window.clone(),
                None => super::read::sender(engine, &sender)?,
            };
            known.push((sender, window));
        }
        Ok(Windows::new(known))
    }

    pub(super) fn retain(&mut self, before_ns: i64) -> Result<u64, StoreError> {
        let engine = self.database.engine()?;
        self.refresh(&engine)?;
        let day_ns = floor(before_ns, DAY_NS);
        let Database { view, progress, .. } = &mut self.database;
        let result = checkpoint::write_all(&engine, view, progress, &mut self.pending)
            .and_then(|()| retain::delete_before(&engine, day_ns));
        self.windows.clear();
        self.series.clear();
        result.inspect_err(|error| self.database.close(error))
    }
}

// === impl Append ===

impl Append {
    fn records(&self) -> usize {
        self.batches.iter().map(|batch| batch.records.len()).sum()
    }
}

/// The appends that wait already, and what else was found behind them.
fn collect(
    first: Append,
    requests: &mut mpsc::Receiver<Request>,
) -> (Vec<Append>, Option<Request>) {
    let mut records = first.records();
    let mut group = vec![first];
    while records < GROUP_RECORDS {
        match requests.try_recv() {
            Ok(Request::Append(append)) => {
                records += append.records();
                group.push(append);
            }
            Ok(other) => return (group, Some(other)),
            Err(_) => break,
        }
    }
    (group, None)
}

fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Origin, UsageBy, UsageQuery};
    use rust_decimal::Decimal;
    use tidegate_core::usage::{Currency, PricedRecord, UsageCharge, UsageRecord};

    fn batch(seq: u64) -> PricedBatch {
        let priced = PricedRecord {
            record: UsageRecord {
                tenant: Arc::from("acme"),
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
        PricedBatch { origin: Some(origin), source: Arc::from("a"), records: vec![priced] }
    }

    fn counted(writer: &UsageWriter) -> u64 {
        writer.database.view.read().summary.iter().map(|(_, tally)| tally.records).sum()
    }

    /// The sync failed, but the journal holds all of it: only what tables hold too may be acknowledged.
    #[test]
    fn a_failed_commit_that_is_in_the_journal_is_found_and_written_again() {
        let name = format!("tidegate-in-doubt-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut writer =
            UsageWriter::open(Folder::take(&path, UsageWriter::KIND).unwrap()).unwrap();
        assert_eq!(
            writer.append(&[&batch(1)], SeriesLimits::default()),
            Ok(vec![(Appended::New, 1)])
        );
        let error = || StoreError::Unavailable("the sync failed".into());
        {
            let (first, second) = (batch(1), batch(2));
            let engine = writer.database.engine().unwrap();
            let mut windows = writer.windows_of(&engine, &[&first, &second]).unwrap();
            decide([&second], &mut windows, |_| Ok(0));
            let none = series::guard(
                &engine,
                SeriesLimits::default(),
                (&writer.series, &writer.pending),
                &[],
            );
            let (encoded, none) = (Encoded::new([&second].into_iter()), none.unwrap().finish());
            writer.commit(&engine, &encoded, &windows, &none).unwrap();
        }
        let tables = |writer: &UsageWriter| {
            writer.database.view.read().engine().unwrap().blocks.table_count()
        };
        assert_eq!((tables(&writer), counted(&writer)), (0, 1));
        assert_eq!(writer.database.find_out(2, error()), Ok(()));
        assert_eq!((tables(&writer) > 0, counted(&writer)), (true, 2));
        assert_eq!(
            writer.append(&[&batch(2)], SeriesLimits::default()),
            Ok(vec![(Appended::Repeat, 0)])
        );
        // One that never got there is not found.
        assert_eq!(writer.database.find_out(3, error()), Err(error()));
        assert_eq!(
            writer.append(&[&batch(3)], SeriesLimits::default()),
            Ok(vec![(Appended::New, 0)])
        );
        assert_eq!(counted(&writer), 3);
        drop(writer);
        std::fs::remove_dir_all(path).unwrap();
    }

    /// One record each of tenants `first..first + count`.
    fn of_tenants(seq: u64, first: usize, count: usize) -> PricedBatch {
        let mut it = batch(seq);
        let one = it.records.remove(0);
        it.records = vec![one; count];
        for (number, priced) in it.records.iter_mut().enumerate() {
            priced.record.tenant = format!("tenant-{}", first + number).into();
        }
        it
    }

    fn records_by_tenant(writer: &UsageWriter) -> Vec<u64> {
        let query = UsageQuery::new(UsageBy::Tenant, i64::MIN, i64::MAX);
        let page = super::super::read::usage(&writer.database.view, &query).unwrap();
        assert_eq!(page.next, None);
        page.rows.iter().map(|row| row.records).collect()
    }

    /// The process ends after each slice of a checkpoint, with appends between slices: every record counts once.
    #[test]
    fn a_checkpoint_that_ends_after_any_slice_is_continued() {
        const TENANTS: usize = 4 * SLICE_TALLIES + 10;
        for slices in 0..=6 {
            let name = format!("tidegate-slices-{}-{slices}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let open = || UsageWriter::open(Folder::take(&path, UsageWriter::KIND).unwrap());
            let none = SeriesLimits::default();
            let mut writer = open().unwrap();
            let append = |writer: &mut UsageWriter, seq, first, count| {
                let outcomes = writer.append(&[&of_tenants(seq, first, count)], none);
                assert_eq!(outcomes.map(|of| of[0].0), Ok(Appended::New));
            };
            // More blocks than one slice removes, and sums that exist.
            append(&mut writer, 1, 0, 9);
            writer.retain(i64::MIN).unwrap();
            for seq in 2..=300 {
                append(&mut writer, seq, 0, 1);
            }
            append(&mut writer, 301, 0, TENANTS);
            checkpoint::begin(&writer.database.view, &mut writer.database.progress);
            for slice in 0..slices {
                assert!(writer.continue_checkpoint().unwrap(), "slice {slice}");
                append(&mut writer, 302 + slice, 0, 2 * SLICE_TALLIES);
            }
            assert_eq!(writer.database.progress.checkpoint.is_none(), slices == 6);
            let expected = records_by_tenant(&writer);
            let total = 9 + 299 + TENANTS as u64 + slices * 2 * SLICE_TALLIES as u64;
            assert_eq!((expected.iter().sum(), expected.len()), (total, TENANTS));
            drop(writer);
            let mut writer = open().unwrap();
            assert_eq!(records_by_tenant(&writer), expected, "after {slices} slices");
            writer.retain(i64::MIN).unwrap();
            assert_eq!(records_by_tenant(&writer), expected, "after the rest");
            drop(writer);
            let writer = open().unwrap();
            assert_eq!(records_by_tenant(&writer), expected, "read again");
            drop(writer);
            std::fs::remove_dir_all(path).unwrap();
        }
    }
}
