use super::folder::unavailable;
use crate::storage::StoreError;
use fjall::{AbstractTree as _, Database, Keyspace, KeyspaceCreateOptions, LsmError, PersistMode};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The least that the engine takes. Disk, not memory.
const JOURNAL_BYTES: u64 = 64 * 1024 * 1024;

/// Files kept open, of all keyspaces.
const FILES_MAX: usize = 256;

/// Sealed tables that may wait when a commit begins. The engine itself waits at four, and for ever if what
/// writes them has failed; a commit seals at most two more, so this never comes to that.
const SEALED_MAX: usize = 1;

/// Runs in the first level; the engine begins to stall at 20 and stops at 30.
const RUNS_MAX: usize = 20;

/// Longest wait of a commit for tables to be written.
const ROOM_WAIT: Duration = Duration::from_secs(10);

/// An open database, whatever its keyspaces hold: it never lets a writer wait for ever.
pub(crate) struct Tables {
    db: Database,
    keyspaces: Vec<Keyspace>,
    /// Those that are written now and then, and that no other commit waits for.
    apart: Vec<Keyspace>,
    path: PathBuf,
}

// === impl Tables ===

impl Tables {
    pub(crate) fn open(path: &Path, cache_bytes: u64) -> Result<Self, StoreError> {
        let db = Database::builder(path)
            .cache_size(cache_bytes)
            .max_journaling_size(JOURNAL_BYTES)
            .max_cached_files(Some(FILES_MAX))
            // A second one would spin while the first compacts.
            .worker_threads(1)
            .open()
            .map_err(|error| trouble(path, &error))?;
        Ok(Self { db, keyspaces: Vec::new(), apart: Vec::new(), path: path.to_owned() })
    }

    /// A keyspace of which so many bytes wait in memory before they are written to a table.
    pub(crate) fn keyspace(&mut self, name: &str, bytes: u64) -> Result<Keyspace, StoreError> {
        let options = || KeyspaceCreateOptions::default().max_memtable_size(bytes);
        let keyspace = self.db.keyspace(name, options).map_err(|error| self.trouble(&error))?;
        self.keyspaces.push(keyspace.clone());
        Ok(keyspace)
    }

    /// The same, for commits that [say](Self::wait_for_all_room) that they write to it.
    pub(crate) fn keyspace_apart(
        &mut self,
        name: &str,
        bytes: u64,
    ) -> Result<Keyspace, StoreError> {
        let keyspace = self.keyspace(name, bytes)?;
        self.apart.extend(self.keyspaces.pop());
        Ok(keyspace)
    }

    pub(crate) fn db(&self) -> Database {
        self.db.clone()
    }

    /// Waits until a commit can't block for ever: until tables have been written.
    pub(crate) fn wait_for_room(&self) -> Result<(), StoreError> {
        self.wait_until(|| has_room(&self.keyspaces))
    }

    /// The same for a commit that also writes to the keyspaces apart.
    pub(crate) fn wait_for_all_room(&self) -> Result<(), StoreError> {
        self.wait_until(|| self.has_all_room())
    }

    /// True if a commit can write to every keyspace at once.
    pub(crate) fn has_all_room(&self) -> bool {
        has_room(&self.keyspaces) && has_room(&self.apart)
    }

    fn wait_until(&self, has_room: impl Fn() -> bool) -> Result<(), StoreError> {
        let deadline = Instant::now() + ROOM_WAIT;
        while !has_room() {
            self.check()?;
            if Instant::now() > deadline {
                let what = format!("tables are not written in {} s", ROOM_WAIT.as_secs());
                return Err(unavailable(&self.path, &what));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Writes everything that is in the journal alone to tables too. After a failed sync the journal can be read
    /// back from memory although it is not on the disk.
    pub(crate) fn write_all(&self) -> Result<(), StoreError> {
        let deadline = Instant::now() + ROOM_WAIT;
        for keyspace in self.keyspaces.iter().chain(&self.apart) {
            keyspace.rotate_memtable().map_err(|error| self.trouble(&error))?;
            while keyspace.sealed_memtable_count() > 0 {
                self.check()?;
                if Instant::now() > deadline {
                    return Err(unavailable(&self.path, &"tables are not written"));
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    }

    /// Checks that the engine still accepts writes. After a failed write it does not.
    fn check(&self) -> Result<(), StoreError> {
        self.db.persist(PersistMode::Buffer).map_err(|error| self.trouble(&error))
    }

    pub(crate) fn trouble(&self, error: &fjall::Error) -> StoreError {
        trouble(&self.path, error)
    }

    pub(crate) fn damaged(&self, what: &str) -> StoreError {
        StoreError::Unusable(format!(
            "{}: {what} can't be read: it is damaged or of a newer version; restore a copy",
            self.path.display(),
        ))
    }
}

fn has_room(keyspaces: &[Keyspace]) -> bool {
    keyspaces.iter().all(|keyspace| {
        keyspace.sealed_memtable_count() <= SEALED_MAX && keyspace.tree.l0_run_count() < RUNS_MAX
    })
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
