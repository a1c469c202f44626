use crate::storage::fjall::Tables;
use crate::storage::{self, StoreError};
use fjall::{Database, Keyspace, OwnedWriteBatch, PersistMode};
use std::path::Path;
use tidegate_core::task::TaskId;

const MIB: u64 = 1024 * 1024;

/// Cache for indexes, filters and the last blocks.
const CACHE_BYTES: u64 = 16 * MIB;

/// Size of a memtable by keyspace; up to four times that while tables are being written: at most about 100 MiB.
const LARGE_BYTES: u64 = 8 * MIB;
const MIDDLE_BYTES: u64 = 4 * MIB;
const SMALL_BYTES: u64 = MIB;

/// Where the progress stands in its keyspace, and its format.
const PROGRESS: &str = "progress";
const PROGRESS_FORMAT: u8 = 1;

/// The open database. Dropping the last handle closes it.
pub(crate) struct Engine {
    tables: Tables,
    pub(super) db: Database,
    /// Task: what is to be done, which never changes, with its key and fingerprint.
    pub(super) specs: Keyspace,
    /// Task: where it stands.
    pub(super) states: Keyspace,
    /// Task: what it wrote.
    pub(super) outputs: Keyspace,
    /// Key of a client: task.
    pub(super) keys: Keyspace,
    /// Tasks by their order, as [`super::row`] has it.
    pub(super) index: Keyspace,
    progress: Keyspace,
}

/// Progress of the writer, stored with every commit, so that it is right whenever the process ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// The number of the last commit.
    pub(super) commit: u64,
    /// The place of the next task in the order of submission.
    pub(super) next_seq: u64,
    /// Number of tasks in each status.
    pub(super) counts: [u64; 6],
}

// === impl Engine ===

impl Engine {
    /// Commits what is to change, with the progress that comes of it. It survives the end of the process from then
    /// on, and a power cut only after [`sync`](Self::sync).
    pub(super) fn commit(
        &self,
        mut batch: OwnedWriteBatch,
        progress: &Progress,
    ) -> Result<(), StoreError> {
        batch.insert(&self.progress, PROGRESS, progress.to_bytes());
        let batch = batch.durability(Some(PersistMode::Buffer));
        batch.commit().map_err(|error| self.trouble(&error))
    }

    /// Makes everything that was committed survive a power cut.
    pub(super) fn sync(&self) -> Result<(), StoreError> {
        self.db.persist(PersistMode::SyncData).map_err(|error| self.trouble(&error))
    }

    pub(super) fn trouble(&self, error: &fjall::Error) -> StoreError {
        self.tables.trouble(error)
    }

    /// The task that a row of the index or a key names.
    pub(super) fn task_id(&self, bytes: &[u8]) -> Result<TaskId, StoreError> {
        let id = std::str::from_utf8(bytes).ok().and_then(|text| TaskId::new(text).ok());
        id.ok_or_else(|| self.tables.damaged("a task's name in the index"))
    }
}

impl storage::fjall::Engine for Engine {
    type Progress = Progress;
    /// The number of tasks in each status.
    type Summary = [u64; 6];

    fn open_at(path: &Path) -> Result<Self, StoreError> {
        let mut tables = Tables::open(path, CACHE_BYTES)?;
        let mut keyspace = |name, bytes| tables.keyspace(name, bytes);
        let (specs, states) = (keyspace("specs", LARGE_BYTES)?, keyspace("states", LARGE_BYTES)?);
        let (outputs, index) =
            (keyspace("outputs", MIDDLE_BYTES)?, keyspace("index", MIDDLE_BYTES)?);
        let (keys, progress) = (keyspace("keys", SMALL_BYTES)?, keyspace("progress", SMALL_BYTES)?);
        Ok(Self { db: tables.db(), tables, specs, states, outputs, keys, index, progress })
    }

    fn load(&self) -> Result<(Progress, [u64; 6]), StoreError> {
        let stored = self.progress.get(PROGRESS).map_err(|error| self.trouble(&error))?;
        let progress = match stored {
            Some(bytes) => {
                Progress::read(&bytes).ok_or_else(|| self.tables.damaged("the progress"))?
            }
            None => Progress::default(),
        };
        let counts = progress.counts;
        Ok((progress, counts))
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
        f.debug_struct("Engine").field("states", &self.states.path()).finish_non_exhaustive()
    }
}

// === impl Progress ===

impl Progress {
    fn read(bytes: &[u8]) -> Option<Self> {
        let (format, rest) = bytes.split_first()?;
        // A later version may add numbers behind these.
        let numbers = rest.first_chunk::<64>().filter(|_| *format == PROGRESS_FORMAT)?;
        let mut numbers = numbers
            .chunks_exact(8)
            .map(|bytes| bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte)));
        let (commit, next_seq) = (numbers.next()?, numbers.next()?);
        let mut counts = [0; 6];
        counts.iter_mut().zip(numbers).for_each(|(count, number)| *count = number);
        Some(Self { commit, next_seq, counts })
    }

    fn to_bytes(&self) -> Vec<u8> {
        let numbers = [self.commit, self.next_seq].into_iter().chain(self.counts);
        let mut bytes = vec![PROGRESS_FORMAT];
        numbers.for_each(|number| bytes.extend_from_slice(&number.to_be_bytes()));
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_comes_back() {
        let progress = Progress { commit: 1 << 40, next_seq: 7, counts: [1, 2, 3, 4, 5, u64::MAX] };
        let mut bytes = progress.to_bytes();
        assert_eq!(Progress::read(&bytes), Some(progress.clone()));
        bytes.push(9);
        assert_eq!(Progress::read(&bytes), Some(progress), "of a later version");
        assert_eq!(Progress::read(&bytes[..64]), None);
        assert_eq!(Progress::read(&[2; 65]), None);
    }
}
