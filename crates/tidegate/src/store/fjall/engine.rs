use super::key::Covered;
use super::recent::Recent;
use super::{block, key};
use crate::storage;
use crate::storage::StoreError;
use crate::storage::fjall::Tables;
use crate::store::tally::Tallies;
use fjall::{Database, Keyspace};
use std::path::Path;

const MIB: u64 = 1024 * 1024;

/// Cache for indexes, filters and the last blocks.
const CACHE_BYTES: u64 = 8 * MIB;

/// Size of a memtable by keyspace. With the active one and at most three sealed ones: 4 × (6 + 2 + 4 × 1) = 48 MiB
/// at worst, so that with the cache and the sums of [`super::checkpoint`] the whole store stays under 64 MB.
const BLOCKS_BYTES: u64 = 6 * MIB;
const SUMS_BYTES: u64 = 2 * MIB;
const SMALL_BYTES: u64 = MIB;

/// The open database. Dropping the last handle closes it.
pub(crate) struct Engine {
    tables: Tables,
    pub(super) db: Database,
    /// Latest time and number: a block of records.
    pub(super) blocks: Keyspace,
    /// Tenant, meter, level, time, currency, client: a sum.
    pub(super) sums: Keyspace,
    /// The same of all tenants, by meter and by client.
    pub(super) totals: Keyspace,
    /// Name: when it last sent, and the numbers it has sent.
    pub(super) senders: Keyspace,
    /// Tenant and meter: the source that began the series.
    pub(super) series: Keyspace,
    /// Progress, counts of series, and the keys of the blocks that are not in the sums yet.
    pub(super) log: Keyspace,
}

/// The usage view of readers: the database, and the sums of blocks that no checkpoint has covered yet.
pub(super) type UsageView = storage::fjall::View<Engine>;

/// The writer's progress.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The number of the last commit.
    pub(super) commit: u64,
    /// The number of the next block.
    pub(super) next_block: u64,
    /// The blocks that are not in the sums yet, and how many records they have.
    pub(super) behind: Vec<u64>,
    pub(super) records_behind: usize,
    /// The checkpoint under way, whose blocks are not among `behind`.
    pub(super) checkpoint: Option<Checkpoint>,
}

/// A checkpoint under way.
#[derive(Debug)]
pub(crate) struct Checkpoint {
    /// Its blocks that are in the log: those before this number.
    pub(super) until_block: u64,
    pub(super) blocks: Vec<u64>,
    pub(super) records: usize,
    /// The log tells of it.
    pub(super) is_logged: bool,
}

// === impl Engine ===

impl Engine {
    pub(super) fn trouble(&self, error: &fjall::Error) -> StoreError {
        self.tables.trouble(error)
    }

    pub(super) fn damaged(&self, what: &str) -> StoreError {
        self.tables.damaged(what)
    }

    /// The checkpoint that a crash interrupted, without its blocks.
    fn checkpoint_under_way(&self) -> Result<Option<(Checkpoint, Covered)>, StoreError> {
        let row = self.log.get(key::CHECKPOINT).map_err(|error| self.trouble(&error))?;
        let Some(row) = row else { return Ok(None) };
        let decoded = key::decode_covered(&row);
        let (until_block, covered) = decoded.ok_or_else(|| self.damaged("the log"))?;
        let blocks = Vec::new();
        Ok(Some((Checkpoint { until_block, blocks, records: 0, is_logged: true }, covered)))
    }

    /// The sums of a block, and the number of its records.
    fn tallies(&self, block_key: &[u8]) -> Result<(Tallies, usize), StoreError> {
        let block = self.blocks.get(block_key).map_err(|error| self.trouble(&error))?;
        let block = block.ok_or_else(|| self.damaged("the list of blocks"))?;
        let records = block::decode(&block).map_err(|_| self.damaged("a block"))?;
        let mut tallies = Tallies::default();
        records.iter().for_each(|(client, priced)| tallies.count(client, priced));
        Ok((tallies, records.len()))
    }
}

impl storage::fjall::Engine for Engine {
    type Progress = Progress;
    type Summary = Recent;

    fn open_at(path: &Path) -> Result<Self, StoreError> {
        let mut tables = Tables::open(path, CACHE_BYTES)?;
        let sums = tables.keyspace_apart("sums", SUMS_BYTES)?;
        let totals = tables.keyspace_apart("totals", SMALL_BYTES)?;
        let mut keyspace = |name, bytes| tables.keyspace(name, bytes);
        let blocks = keyspace("blocks", BLOCKS_BYTES)?;
        let (senders, log) = (keyspace("senders", SMALL_BYTES)?, keyspace("log", SMALL_BYTES)?);
        let series = keyspace("series", SMALL_BYTES)?;
        Ok(Self { db: tables.db(), tables, blocks, sums, totals, senders, series, log })
    }

    fn load(&self) -> Result<(Progress, Recent), StoreError> {
        let (mut progress, mut recent) = (Progress::default(), Recent::default());
        if let Some(state) = self.log.get(key::STATE).map_err(|error| self.trouble(&error))? {
            let numbers =
                state.split_first_chunk::<8>().and_then(|(a, b)| Some((a, b.first_chunk()?)));
            let (commit, next_block) = numbers.ok_or_else(|| self.damaged("the log"))?;
            progress.commit = u64::from_be_bytes(*commit);
            progress.next_block = u64::from_be_bytes(*next_block);
        }
        let mut under_way = self.checkpoint_under_way()?;
        for row in self.log.prefix([key::BEHIND]) {
            let (log_key, block_key) = row.into_inner().map_err(|error| self.trouble(&error))?;
            let number = log_key.last_chunk().ok_or_else(|| self.damaged("the log"))?;
            let number = u64::from_be_bytes(*number);
            let frozen = under_way.as_mut().filter(|(it, _)| number < it.until_block);
            match frozen {
                Some((checkpoint, Covered::All)) => checkpoint.blocks.push(number),
                Some((checkpoint, Covered::UpTo(last))) => {
                    let (mut tallies, records) = self.tallies(&block_key)?;
                    tallies.retain(|key| key > last);
                    recent.merge_frozen(tallies);
                    checkpoint.blocks.push(number);
                    checkpoint.records += records;
                }
                None => {
                    let (tallies, records) = self.tallies(&block_key)?;
                    recent.merge(tallies);
                    progress.behind.push(number);
                    progress.records_behind += records;
                }
            }
        }
        progress.checkpoint = under_way.map(|(checkpoint, _)| checkpoint);
        super::series::count_existing(self, &recent)?;
        super::totals::make_missing(self)?;
        Ok((progress, recent))
    }

    fn last_commit(progress: &Progress) -> u64 {
        progress.commit
    }

    fn tables(&self) -> &Tables {
        &self.tables
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("blocks", &self.blocks.path()).finish_non_exhaustive()
    }
}
