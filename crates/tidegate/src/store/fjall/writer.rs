use super::block::BlockBuilder;
use super::engine::Engine;
use super::key::DAY_NS;
use super::{checkpoint, key, retain};
use crate::storage::fjall::{Database, Folder, Kind, Reply, Writer};
use crate::store::decide::{Windows, decide, senders};
use crate::store::tally::{Tallies, floor};
use crate::store::{Appended, PricedBatch, StoreError};
use fjall::PersistMode;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::SystemTime;
use tidegate_core::sequence::SeqWindow;
use tokio::sync::mpsc;

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
    pub(super) reply: Reply<Vec<Appended>>,
}

/// The writer of a usage store.
pub(super) struct UsageWriter {
    database: Database<Engine>,
    windows: HashMap<Arc<str>, SeqWindow>,
    /// The opening of the database that `windows` belongs to.
    windows_opening: u64,
}

/// Encoded batches of an append.
struct Encoded {
    blocks: Vec<(i64, Vec<u8>)>,
    tallies: Tallies,
    records: usize,
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
        Ok(Self { database, windows: HashMap::new(), windows_opening: 0 })
    }

    fn database(&mut self) -> &mut Database<Engine> {
        &mut self.database
    }

    fn serve(mut self, mut requests: mpsc::Receiver<Request>) {
        let mut waiting = None;
        while let Some(request) = waiting.take().or_else(|| requests.blocking_recv()) {
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
    }
}

impl UsageWriter {
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

    fn append(&mut self, batches: &[&PricedBatch]) -> Result<Vec<Appended>, StoreError> {
        let engine = self.database.engine_with_room()?;
        let mut windows = self.windows_of(&engine, batches)?;
        let outcomes = decide(batches.iter().copied(), &mut windows);
        let new = batches.iter().zip(&outcomes).filter(|(_, outcome)| **outcome == Appended::New);
        let encoded = Encoded::new(new.map(|(batch, _)| *batch));
        let nothing = encoded.blocks.is_empty() && windows.changed().next().is_none();
        if nothing {
            return Ok(outcomes);
        }
        let commit = self.database.progress.commit + 1;
        match self.commit(&engine, &encoded, &windows) {
            Ok(()) => {
                self.committed(encoded, &windows);
                self.checkpoint(&engine);
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
        let now = now_ns().to_be_bytes();
        for (sender, window) in windows.changed() {
            let value = [&now[..], &window.to_bytes()].concat();
            batch.insert(&engine.senders, key::sender(sender), value);
        }
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

    /// Writes a checkpoint if one is due. The append is durable already: a failure here concerns the next one.
    fn checkpoint(&mut self, engine: &Engine) {
        let Database { view, progress, .. } = &mut self.database;
        let due = checkpoint::is_due(progress, &view.read().summary);
        if !due {
            return;
        }
        if let Err(error) = checkpoint::write(engine, view, progress) {
            self.database.close(&error);
        }
    }

    fn windows_of(
        &mut self,
        engine: &Engine,
        batches: &[&PricedBatch],
    ) -> Result<Windows, StoreError> {
        if self.windows_opening != self.database.openings() {
            self.windows.clear();
            self.windows_opening = self.database.openings();
        }
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
        let engine = self.database.engine()?;
        let day_ns = floor(before_ns, DAY_NS);
        let Database { view, progress, .. } = &mut self.database;
        let result = checkpoint::write(&engine, view, progress)
            .and_then(|()| retain::delete_before(&engine, day_ns));
        self.windows.clear();
        result.inspect_err(|error| self.database.close(error))
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
        let origin = Origin { sender: Arc::from("a"), seq, settled: 0 };
        PricedBatch { origin: Some(origin), records: vec![priced] }
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
        assert_eq!(writer.append(&[&batch(1)]), Ok(vec![Appended::New]));
        let error = || StoreError::Unavailable("the sync failed".into());
        {
            let (first, second) = (batch(1), batch(2));
            let engine = writer.database.engine().unwrap();
            let mut windows = writer.windows_of(&engine, &[&first, &second]).unwrap();
            decide([&second], &mut windows);
            writer.commit(&engine, &Encoded::new([&second].into_iter()), &windows).unwrap();
        }
        let tables = |writer: &UsageWriter| {
            writer.database.view.read().engine().unwrap().blocks.table_count()
        };
        assert_eq!((tables(&writer), counted(&writer)), (0, 1));
        assert_eq!(writer.database.find_out(2, error()), Ok(()));
        assert_eq!((tables(&writer) > 0, counted(&writer)), (true, 2));
        assert_eq!(writer.append(&[&batch(2)]), Ok(vec![Appended::Repeat]));
        // One that never got there is not found.
        assert_eq!(writer.database.find_out(3, error()), Err(error()));
        assert_eq!(writer.append(&[&batch(3)]), Ok(vec![Appended::New]));
        assert_eq!(counted(&writer), 3);
        drop(writer);
        std::fs::remove_dir_all(path).unwrap();
    }
}
