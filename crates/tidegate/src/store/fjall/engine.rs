use super::folder::{Folder, unavailable};
use super::{block, key};
use crate::store::StoreError;
use crate::store::tally::Tallies;
use fjall::{AbstractTree as _, Database, Keyspace, KeyspaceCreateOptions, LsmError, PersistMode};
use std::path::Path;
use std::time::{Duration, Instant};

const MIB: u64 = 1024 * 1024;

/// What is read again soon: indexes, filters and the last blocks.
const CACHE_BYTES: u64 = 8 * MIB;

/// What may wait in memory before it is written to a table, by keyspace. The active one and at most three sealed
/// ones: 4 × (6 + 2 + 1 + 1) = 40 MiB at worst, so that with the cache and the sums of [`super::checkpoint`] the
/// whole store stays under 64 MB.
const BLOCKS_BYTES: u64 = 6 * MIB;
const SUMS_BYTES: u64 = 2 * MIB;
const SMALL_BYTES: u64 = MIB;

/// The least that the engine takes. Disk, not memory.
const JOURNAL_BYTES: u64 = 64 * MIB;

/// Files kept open, of all keyspaces.
const FILES_MAX: usize = 256;

/// Sealed tables that may wait when a commit begins. The engine itself waits at four, and for ever if what
/// writes them has failed; a commit seals at most two more, so this never comes to that.
const SEALED_MAX: usize = 1;

/// Runs in the first level; the engine begins to stall at 20 and stops at 30.
const RUNS_MAX: usize = 20;

/// How long a commit waits for tables to be written before it is given back.
const ROOM_WAIT: Duration = Duration::from_secs(10);

/// The open database. Dropping the last handle closes it.
pub(super) struct Engine {
    pub(super) db: Database,
    /// Latest time and number: a block of records.
    pub(super) blocks: Keyspace,
    /// Tenant, meter, level, time, currency: a sum.
    pub(super) sums: Keyspace,
    /// Name: when it last sent, and the numbers it has sent.
    pub(super) senders: Keyspace,
    /// How far we are, and the keys of the blocks that are not in the sums yet.
    pub(super) log: Keyspace,
}

/// How far a store is.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// The number of the last commit.
    pub(super) commit: u64,
    /// The number of the next block.
    pub(super) next_block: u64,
    /// The blocks that are not in the sums yet, and how many records they have.
    pub(super) behind: Vec<u64>,
    pub(super) records_behind: usize,
}

// === impl Engine ===

impl Engine {
    /// Opens what a folder holds.
    pub(super) fn open(folder: &Folder) -> Result<Self, StoreError> {
        folder.create_data(|path| Self::open_at(path).map(drop))?;
        Self::open_at(&folder.data())
    }

    fn open_at(path: &Path) -> Result<Self, StoreError> {
        let trouble = |error| trouble(path, &error);
        let db = Database::builder(path)
            .cache_size(CACHE_BYTES)
            .max_journaling_size(JOURNAL_BYTES)
            .max_cached_files(Some(FILES_MAX))
            // A second one would spin while the first compacts.
            .worker_threads(1)
            .open()
            .map_err(trouble)?;
        let keyspace = |name, bytes| {
            db.keyspace(name, || KeyspaceCreateOptions::default().max_memtable_size(bytes))
                .map_err(trouble)
        };
        let (blocks, sums) = (keyspace("blocks", BLOCKS_BYTES)?, keyspace("sums", SUMS_BYTES)?);
        let (senders, log) = (keyspace("senders", SMALL_BYTES)?, keyspace("log", SMALL_BYTES)?);
        Ok(Self { db, blocks, sums, senders, log })
    }

    /// How far the store is, and what is not in the sums yet.
    pub(super) fn load(&self) -> Result<(Progress, Tallies), StoreError> {
        let (mut progress, mut tallies) = (Progress::default(), Tallies::default());
        if let Some(state) = self.log.get(key::STATE).map_err(|error| self.trouble(&error))? {
            let numbers =
                state.split_first_chunk::<8>().and_then(|(a, b)| Some((a, b.first_chunk()?)));
            let (commit, next_block) = numbers.ok_or_else(|| self.damaged("the log"))?;
            progress.commit = u64::from_be_bytes(*commit);
            progress.next_block = u64::from_be_bytes(*next_block);
        }
        for row in self.log.prefix([key::BEHIND]) {
            let (log_key, block_key) = row.into_inner().map_err(|error| self.trouble(&error))?;
            let number = log_key.last_chunk().ok_or_else(|| self.damaged("the log"))?;
            progress.behind.push(u64::from_be_bytes(*number));
            let block = self.blocks.get(&block_key).map_err(|error| self.trouble(&error))?;
            let block = block.ok_or_else(|| self.damaged("the list of blocks"))?;
            let records = block::decode(&block).map_err(|_| self.damaged("a block"))?;
            progress.records_behind += records.len();
            records.iter().for_each(|priced| tallies.count(priced));
        }
        Ok((progress, tallies))
    }

    /// Waits until a commit can't block for ever: until tables have been written.
    pub(super) fn wait_for_room(&self) -> Result<(), StoreError> {
        let deadline = Instant::now() + ROOM_WAIT;
        while !self.has_room() {
            self.check()?;
            if Instant::now() > deadline {
                return Err(unavailable(
                    self.blocks.path(),
                    &format!("tables are not written in {} s", ROOM_WAIT.as_secs()),
                ));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Writes everything that is in the journal alone to tables too. After a failed sync the journal can be read
    /// back from memory although it is not on the disk.
    pub(super) fn write_tables(&self) -> Result<(), StoreError> {
        let deadline = Instant::now() + ROOM_WAIT;
        for keyspace in self.keyspaces() {
            keyspace.rotate_memtable().map_err(|error| self.trouble(&error))?;
            while keyspace.sealed_memtable_count() > 0 {
                self.check()?;
                if Instant::now() > deadline {
                    return Err(unavailable(self.blocks.path(), &"tables are not written"));
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    }

    fn has_room(&self) -> bool {
        self.keyspaces().iter().all(|keyspace| {
            keyspace.sealed_memtable_count() <= SEALED_MAX
                && keyspace.tree.l0_run_count() < RUNS_MAX
        })
    }

    /// Whether the engine still takes writes. It does not after a failed one.
    fn check(&self) -> Result<(), StoreError> {
        self.db.persist(PersistMode::Buffer).map_err(|error| self.trouble(&error))
    }

    fn keyspaces(&self) -> [&Keyspace; 4] {
        [&self.blocks, &self.sums, &self.senders, &self.log]
    }

    pub(super) fn trouble(&self, error: &fjall::Error) -> StoreError {
        trouble(self.blocks.path(), error)
    }

    pub(super) fn damaged(&self, what: &str) -> StoreError {
        StoreError::Unusable(format!(
            "{}: {what} can't be read: it is damaged or of a newer version; restore a copy",
            self.blocks.path().display(),
        ))
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("blocks", &self.blocks.path()).finish_non_exhaustive()
    }
}

fn trouble(path: &Path, error: &fjall::Error) -> StoreError {
    let shown = path.display();
    match error {
        fjall::Error::Io(error) => unavailable(path, error),
        fjall::Error::Storage(LsmError::Io(error)) => unavailable(path, error),
        fjall::Error::Poisoned => unavailable(path, &"an earlier write failed"),
        fjall::Error::Locked => unavailable(path, &"in use by another process"),
        other => StoreError::Unusable(format!("{shown}: {other:?}")),
    }
}
