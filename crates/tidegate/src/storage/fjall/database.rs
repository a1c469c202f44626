use super::{Folder, Tables, View};
use crate::storage::StoreError;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Time that readers get to finish before a database that failed is opened again.
const READERS_WAIT: Duration = Duration::from_secs(5);

/// The open keyspaces of one kind of store.
pub(crate) trait Engine: Sized + Send + Sync + 'static {
    /// Progress of the writer, stored with every commit.
    type Progress: Default + Send;
    /// Sums that readers need beside the keyspaces.
    type Summary: Default + Send + Sync;

    /// Opens the keyspaces, or creates them.
    fn open_at(path: &Path) -> Result<Self, StoreError>;

    /// Reads the progress and the summary.
    fn load(&self) -> Result<(Self::Progress, Self::Summary), StoreError>;

    /// The number of the last commit.
    fn last_commit(progress: &Self::Progress) -> u64;

    fn tables(&self) -> &Tables;
}

/// A database that is closed by a failed write and opened again by the next one: no restart is needed.
pub(crate) struct Database<E: Engine> {
    folder: Folder,
    pub(crate) view: Arc<View<E>>,
    pub(crate) progress: E::Progress,
    /// The last commit that survives a power cut.
    pub(crate) synced: u64,
    /// A database that failed, until its last reader is done.
    closing: Option<Arc<E>>,
    /// The number of a commit that failed, but may be in the journal.
    in_doubt: Option<u64>,
    /// Number of times that the database was opened.
    openings: u64,
}

// === impl Database ===

impl<E: Engine> Database<E> {
    /// Opens the database of a folder, or creates one. Commits from number `in_doubt` on may be in the journal
    /// without having been synced; they are written to tables.
    pub(crate) fn open(folder: Folder, in_doubt: Option<u64>) -> Result<Self, StoreError> {
        let mut database = Self {
            folder,
            view: Arc::default(),
            progress: E::Progress::default(),
            synced: 0,
            closing: None,
            in_doubt,
            openings: 0,
        };
        database.reopen()?;
        Ok(database)
    }

    pub(crate) fn openings(&self) -> u64 {
        self.openings
    }

    /// The open database, opened again if it failed before.
    pub(crate) fn engine(&mut self) -> Result<Arc<E>, StoreError> {
        if self.view.read().engine.is_none() {
            self.reopen()?;
        }
        self.view.read().engine()
    }

    /// The same, once a commit can't block for ever.
    pub(crate) fn engine_with_room(&mut self) -> Result<Arc<E>, StoreError> {
        let engine = self.engine()?;
        engine.tables().wait_for_room().inspect_err(|error| self.close(error))?;
        Ok(engine)
    }

    /// Finds out whether a failed commit is complete in the journal, by opening the database again. If that fails
    /// too, a repetition of the write finds out.
    pub(crate) fn find_out(&mut self, commit: u64, error: StoreError) -> Result<(), StoreError> {
        self.close(&error);
        match self.engine() {
            Ok(_) if E::last_commit(&self.progress) >= commit => Ok(()),
            _ => Err(error),
        }
    }

    /// Closes a database that failed: it refuses further writes itself.
    pub(crate) fn close(&mut self, error: &StoreError) {
        let mut state = self.view.write();
        state.closed_by = error.to_string();
        if let Some(engine) = state.engine.take() {
            let folder = self.folder.path().display();
            tracing::warn!(%folder, %error, "the store failed; the next write opens it again");
            self.closing = Some(engine);
            self.in_doubt = Some(self.synced + 1);
        }
    }

    /// Closes the database after a panic of the engine.
    pub(crate) fn close_after_panic(&mut self) -> StoreError {
        let folder = self.folder.path().display();
        let error = StoreError::Unavailable(format!(
            "{folder}: the storage engine failed; the next write opens it again"
        ));
        self.close(&error);
        error
    }

    fn reopen(&mut self) -> Result<(), StoreError> {
        self.wait_for_readers()?;
        self.folder.create_data(|path| E::open_at(path).map(drop))?;
        let engine = E::open_at(&self.folder.data())?;
        let (progress, summary) = engine.load()?;
        let commit = E::last_commit(&progress);
        if self.in_doubt.is_some_and(|first| commit >= first) {
            engine.tables().write_all()?;
        }
        (self.in_doubt, self.synced, self.progress) = (None, commit, progress);
        self.openings += 1;
        let mut state = self.view.write();
        state.engine = Some(Arc::new(engine));
        state.summary = summary;
        Ok(())
    }

    /// Waits for the last reader of a database that failed; only then is the database closed.
    fn wait_for_readers(&mut self) -> Result<(), StoreError> {
        let deadline = Instant::now() + READERS_WAIT;
        while let Some(engine) = self.closing.take() {
            match Arc::try_unwrap(engine) {
                Ok(engine) => drop(engine),
                Err(engine) if Instant::now() > deadline => {
                    self.closing = Some(engine);
                    let what = "a query still uses the failed database".to_owned();
                    return Err(StoreError::Unavailable(what));
                }
                Err(engine) => {
                    self.closing = Some(engine);
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
        }
        Ok(())
    }
}
