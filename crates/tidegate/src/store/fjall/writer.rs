use super::block::BlockBuilder;
use super::engine::{Engine, Progress};
use super::folder::Folder;
use super::key::DAY_NS;
use super::tables::wait_for_readers;
use super::view::View;
use super::{checkpoint, key, retain};
use crate::store::decide::{Windows, decide, senders};
use crate::store::tally::{Tallies, floor};
use crate::store::{Appended, PricedBatch, StoreError};
use fjall::PersistMode;
use std::collections::{BTreeMap, HashMap};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::SystemTime;
use tidegate_core::sequence::SeqWindow;
use tokio::sync::{mpsc, oneshot};

/// Appends that wait are committed together, up to so many records: one sync for all.
const GROUP_RECORDS: usize = 64 * 1024;

/// How many senders' windows are kept at hand: about 1 MB.
const WINDOWS_MAX: usize = 4096;

/// What the writer is asked for.
pub(super) enum Request {
    Append(Append),
    Retain { before_ns: i64, reply: oneshot::Sender<Result<u64, StoreError>> },
}

/// Batches, which the caller holds too, so that they can be given back whatever happens here.
pub(super) struct Append {
    pub(super) batches: Arc<Vec<PricedBatch>>,
    pub(super) reply: oneshot::Sender<Result<Vec<Appended>, StoreError>>,
}

/// The one that changes the store, on a thread of its own.
pub(super) struct Writer {
    folder: Folder,
    view: Arc<View>,
    progress: Progress,
    windows: HashMap<Arc<str>, SeqWindow>,
    /// A database that failed, until its last reader is done.
    closing: Option<Arc<Engine>>,
    /// The number of a commit that failed, and may be in the journal nevertheless.
    in_doubt: Option<u64>,
}

/// What an append adds.
struct Encoded {
    blocks: Vec<(i64, Vec<u8>)>,
    tallies: Tallies,
    records: usize,
}

// === impl Writer ===

impl Writer {
    /// Opens a folder's database, or makes one.
    pub(super) fn open(folder: Folder) -> Result<Self, StoreError> {
        let mut writer = Self {
            folder,
            view: Arc::default(),
            progress: Progress::default(),
            windows: HashMap::new(),
            closing: None,
            in_doubt: None,
        };
        writer.reopen()?;
        Ok(writer)
    }

    pub(super) fn view(&self) -> Arc<View> {
        self.view.clone()
    }

    /// Does what is asked, until nobody can ask any more.
    pub(super) fn serve(mut self, mut requests: mpsc::Receiver<Request>) {
        let mut waiting = None;
        while let Some(request) = waiting.take().or_else(|| requests.blocking_recv()) {
            match request {
                Request::Append(first) => {
                    let (group, next) = collect(first, &mut requests);
                    waiting = next;
                    self.append_group(group);
                }
                Request::Retain { before_ns, reply } => {
                    // An asker that has left doesn't need the answer.
                    let _ = reply.send(self.guarded(|writer| writer.retain(before_ns)));
                }
            }
        }
    }

    fn append_group(&mut self, group: Vec<Append>) {
        let result = self.guarded(|writer| {
            let batches: Vec<_> = group.iter().flat_map(|append| append.batches.iter()).collect();
            writer.append(&batches)
        });
        let mut outcomes = result.map(Vec::into_iter);
        for Append { batches, reply } in group {
            let answer = match &mut outcomes {
                Ok(outcomes) => Ok(outcomes.take(batches.len()).collect()),
                Err(error) => Err(error.clone()),
            };
            // Before the answer, so that the caller is the only one to hold them.
            drop(batches);
            let _ = reply.send(answer);
        }
    }

    /// A panic inside the engine is a failed write: close it, and open it again for the next.
    fn guarded<T>(
        &mut self,
        what: impl FnOnce(&mut Self) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        catch_unwind(AssertUnwindSafe(|| what(self))).unwrap_or_else(|_| {
            let error = StoreError::Unavailable(format!(
                "{}: the storage engine failed; it is opened again",
                self.folder.path().display(),
            ));
            self.close(&error);
            Err(error)
        })
    }

    fn append(&mut self, batches: &[&PricedBatch]) -> Result<Vec<Appended>, StoreError> {
        let engine = self.engine()?;
        engine.wait_for_room().inspect_err(|error| self.close(error))?;
        let mut windows = self.windows_of(&engine, batches)?;
        let outcomes = decide(batches.iter().copied(), &mut windows);
        let new = batches.iter().zip(&outcomes).filter(|(_, outcome)| **outcome == Appended::New);
        let encoded = Encoded::new(new.map(|(batch, _)| *batch));
        let nothing = encoded.blocks.is_empty() && windows.changed().next().is_none();
        if nothing {
            return Ok(outcomes);
        }
        let commit = self.progress.commit + 1;
        match self.commit(&engine, &encoded, &windows) {
            Ok(()) => {
                self.committed(encoded, &windows);
                self.checkpoint(&engine);
                Ok(outcomes)
            }
            Err(error) => {
                drop(engine);
                self.find_out(commit, error).map(|()| outcomes)
            }
        }
    }

    fn commit(
        &self,
        engine: &Engine,
        encoded: &Encoded,
        windows: &Windows,
    ) -> Result<(), StoreError> {
        let mut batch = engine.db.batch().durability(Some(PersistMode::SyncData));
        let mut number = self.progress.next_block;
        for (max_ns, bytes) in &encoded.blocks {
            let block_key = key::block(*max_ns, number);
            batch.insert(&engine.blocks, block_key, bytes.as_slice());
            batch.insert(&engine.log, key::behind(number), block_key);
            number += 1;
        }
        let now = now_ns().to_be_bytes();
        for (sender, window) in windows.changed() {
            let value = [&now[..], &window.to_bytes()].concat();
            batch.insert(&engine.senders, key::sender(sender), value);
        }
        let state = [(self.progress.commit + 1).to_be_bytes(), number.to_be_bytes()].concat();
        batch.insert(&engine.log, key::STATE, state);
        batch.commit().map_err(|error| engine.trouble(&error))
    }

    fn committed(&mut self, encoded: Encoded, windows: &Windows) {
        self.progress.commit += 1;
        for _ in &encoded.blocks {
            self.progress.behind.push(self.progress.next_block);
            self.progress.next_block += 1;
        }
        self.progress.records_behind += encoded.records;
        for (sender, window) in windows.changed() {
            self.windows.insert(sender.clone(), window.clone());
        }
        if self.windows.len() > WINDOWS_MAX {
            self.windows.clear();
        }
        self.view.write().tallies.merge(encoded.tallies);
    }

    /// What was appended is durable whatever happens here: a failure is the next append's.
    fn checkpoint(&mut self, engine: &Engine) {
        let due = checkpoint::is_due(&self.progress, &self.view.read().tallies);
        if !due {
            return;
        }
        if let Err(error) = checkpoint::write(engine, &self.view, &mut self.progress) {
            self.close(&error);
        }
    }

    /// A failed commit may be complete in the journal: opening it again tells. If it can't be opened now, the
    /// batches' numbers will tell when they come again.
    fn find_out(&mut self, commit: u64, error: StoreError) -> Result<(), StoreError> {
        self.close(&error);
        match self.engine() {
            Ok(_) if self.progress.commit >= commit => Ok(()),
            _ => Err(error),
        }
    }

    fn windows_of(&self, engine: &Engine, batches: &[&PricedBatch]) -> Result<Windows, StoreError> {
        let mut known = Vec::new();
        for sender in senders(batches.iter().copied()) {
            let window = match self.windows.get(&sender) {
                Some(window) => window.clone(),
                None => super::read::window(engine, &sender)?,
            };
            known.push((sender, window));
        }
        Ok(Windows::new(known))
    }

    fn retain(&mut self, before_ns: i64) -> Result<u64, StoreError> {
        let engine = self.engine()?;
        let day_ns = floor(before_ns, DAY_NS);
        let result = checkpoint::write(&engine, &self.view, &mut self.progress)
            .and_then(|()| retain::delete_before(&engine, day_ns));
        self.windows.clear();
        result.inspect_err(|error| self.close(error))
    }

    /// The database, opened again if it failed before.
    fn engine(&mut self) -> Result<Arc<Engine>, StoreError> {
        if self.view.read().engine.is_none() {
            self.reopen()?;
        }
        self.view.read().engine()
    }

    fn reopen(&mut self) -> Result<(), StoreError> {
        wait_for_readers(&mut self.closing)?;
        let engine = Engine::open(&self.folder)?;
        let (progress, tallies) = engine.load()?;
        if self.in_doubt.is_some_and(|commit| progress.commit >= commit) {
            engine.write_tables()?;
        }
        self.in_doubt = None;
        self.progress = progress;
        self.windows.clear();
        let mut inside = self.view.write();
        inside.engine = Some(Arc::new(engine));
        inside.tallies = tallies;
        Ok(())
    }

    /// Nothing more is written to this database: it refuses that itself after a failed write.
    fn close(&mut self, error: &StoreError) {
        let mut inside = self.view.write();
        inside.closed_by = error.to_string();
        if let Some(engine) = inside.engine.take() {
            tracing::warn!(%error, "the store failed; it is opened again for the next append");
            self.closing = Some(engine);
            self.in_doubt = Some(self.progress.commit + 1);
        }
    }
}

// === impl Encoded ===

impl Encoded {
    fn new<'a>(batches: impl Iterator<Item = &'a PricedBatch>) -> Self {
        let mut encoded = Self { blocks: Vec::new(), tallies: Tallies::default(), records: 0 };
        let mut days = BTreeMap::<i64, BlockBuilder>::new();
        for priced in batches.flat_map(|batch| &batch.records) {
            let builder = days.entry(priced.record.time_ns.div_euclid(DAY_NS)).or_default();
            builder.push(priced);
            if builder.is_full() {
                encoded.blocks.extend(builder.finish());
            }
            encoded.tallies.count(priced);
            encoded.records += 1;
        }
        encoded.blocks.extend(days.values_mut().filter_map(BlockBuilder::finish));
        encoded
    }
}

/// The appends that wait already, and what else was found behind them.
fn collect(
    first: Append,
    requests: &mut mpsc::Receiver<Request>,
) -> (Vec<Append>, Option<Request>) {
    let count = |append: &Append| append.batches.iter().map(|batch| batch.records.len()).sum();
    let mut records: usize = count(&first);
    let mut group = vec![first];
    while records < GROUP_RECORDS {
        match requests.try_recv() {
            Ok(Request::Append(append)) => {
                records += count(&append);
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
    use crate::store::Origin;
    use rust_decimal::Decimal;
    use tidegate_core::usage::{Charge, Currency, PricedRecord, UsageRecord};

    fn batch(seq: u64) -> PricedBatch {
        let priced = PricedRecord {
            record: UsageRecord {
                tenant: Arc::from("acme"),
                meter: Arc::from("tokens"),
                quantity: Decimal::ONE,
                time_ns: 0,
                labels: Arc::from(""),
            },
            charge: Charge {
                amount: Decimal::ONE,
                currency: Currency::USD,
                tariff: Arc::from("standard"),
                fallback: None,
            },
        };
        let origin = Origin { sender: Arc::from("a"), seq, settled: 0 };
        PricedBatch { origin: Some(origin), records: vec![priced] }
    }

    fn counted(writer: &Writer) -> u64 {
        writer.view.read().tallies.iter().map(|(_, tally)| tally.records).sum()
    }

    /// The sync failed, but the journal holds all of it: only what tables hold too may be acknowledged.
    #[test]
    fn a_failed_commit_that_is_in_the_journal_is_found_and_written_again() {
        let name = format!("tidegate-in-doubt-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut writer =
            Writer::open(Folder::take(&path, crate::store::fjall::store::KIND).unwrap()).unwrap();
        assert_eq!(writer.append(&[&batch(1)]), Ok(vec![Appended::New]));
        let error = || StoreError::Unavailable("the sync failed".into());
        {
            let (first, second) = (batch(1), batch(2));
            let engine = writer.engine().unwrap();
            let mut windows = writer.windows_of(&engine, &[&first, &second]).unwrap();
            decide([&second], &mut windows);
            writer.commit(&engine, &Encoded::new([&second].into_iter()), &windows).unwrap();
        }
        let tables = |writer: &Writer| writer.view.read().engine().unwrap().blocks.table_count();
        assert_eq!((tables(&writer), counted(&writer)), (0, 1));
        assert_eq!(writer.find_out(2, error()), Ok(()));
        assert_eq!((tables(&writer) > 0, counted(&writer)), (true, 2));
        assert_eq!(writer.append(&[&batch(2)]), Ok(vec![Appended::Repeat]));
        // One that never got there is not found.
        assert_eq!(writer.find_out(3, error()), Err(error()));
        assert_eq!(writer.append(&[&batch(3)]), Ok(vec![Appended::New]));
        assert_eq!(counted(&writer), 3);
        drop(writer);
        std::fs::remove_dir_all(path).unwrap();
    }
}
