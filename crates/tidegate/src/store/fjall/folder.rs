use crate::store::StoreError;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What a folder's version file begins with.
const TITLE: &str = "tidegate store ";

/// The version that this program writes, and the only one it reads.
const VERSION: u32 = 1;

const LOCK_FILE: &str = "lock";
const VERSION_FILE: &str = "version";
const VERSION_FILE_NEW: &str = "version.new";
const DATA: &str = "data";
const DATA_NEW: &str = "data.new";

/// How long a folder's last user gets to let go of it.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// A folder that is ours alone until this is dropped.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// Held, not read: the operating system lets go of it when this process ends, however it ends.
    _lock: File,
}

// === impl Folder ===

impl Folder {
    /// Takes a folder, and makes it when it is not there.
    pub(super) fn take(path: &Path) -> Result<Self, StoreError> {
        let trouble = |error: io::Error| unavailable(path, &error);
        fs::create_dir_all(path).map_err(trouble)?;
        refuse_what_is_not_ours(path)?;
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.join(LOCK_FILE))
            .map_err(trouble)?;
        wait_for_lock(&lock, path)?;
        let folder = Self { path: path.to_owned(), _lock: lock };
        folder.check_version()?;
        Ok(folder)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the engine's files are.
    pub(super) fn data(&self) -> PathBuf {
        self.path.join(DATA)
    }

    /// Makes the engine's files with `make` when there are none. Killed at any moment, the next start begins
    /// again: they get their name only when they are complete.
    pub(super) fn create_data(
        &self,
        make: impl FnOnce(&Path) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let trouble = |error: io::Error| unavailable(&self.path, &error);
        if self.data().try_exists().map_err(trouble)? {
            return Ok(());
        }
        let new = self.path.join(DATA_NEW);
        match fs::remove_dir_all(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(trouble(error)),
            _ => make(&new)?,
        }
        fs::rename(&new, self.data()).map_err(trouble)?;
        self.sync().map_err(trouble)
    }

    fn check_version(&self) -> Result<(), StoreError> {
        let trouble = |error: io::Error| unavailable(&self.path, &error);
        let text = match fs::read_to_string(self.path.join(VERSION_FILE)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return self.write_version().map_err(trouble);
            }
            other => other.map_err(trouble)?,
        };
        let shown = self.path.display();
        match text.strip_prefix(TITLE).and_then(|number| number.trim().parse::<u32>().ok()) {
            Some(VERSION) => Ok(()),
            Some(other) => Err(StoreError::Unusable(format!(
                "{shown} is of version {other}, and this program knows version {VERSION}: use the program \
                 that wrote it, or another folder"
            ))),
            None => Err(StoreError::Unusable(format!(
                "{shown} has a file {VERSION_FILE:?} that is not ours: give an empty folder"
            ))),
        }
    }

    fn write_version(&self) -> io::Result<()> {
        let new = self.path.join(VERSION_FILE_NEW);
        let mut file = File::create(&new)?;
        writeln!(file, "{TITLE}{VERSION}")?;
        file.sync_all()?;
        fs::rename(&new, self.path.join(VERSION_FILE))?;
        self.sync()
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

pub(super) fn unavailable(path: &Path, error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Unavailable(format!("{}: {error}", path.display()))
}

/// A folder is ours if it has our version, or is empty but for what a start that was killed leaves there.
fn refuse_what_is_not_ours(path: &Path) -> Result<(), StoreError> {
    if path.join(VERSION_FILE).exists() {
        return Ok(());
    }
    for entry in fs::read_dir(path).map_err(|error| unavailable(path, &error))? {
        let name = entry.map_err(|error| unavailable(path, &error))?.file_name();
        if name != LOCK_FILE && name != VERSION_FILE_NEW && name != VERSION_FILE {
            return Err(StoreError::Unusable(format!(
                "{} holds {name:?} and no store: give an empty folder, or that of a store",
                path.display(),
            )));
        }
    }
    Ok(())
}

fn wait_for_lock(lock: &File, path: &Path) -> Result<(), StoreError> {
    let deadline = Instant::now() + LOCK_WAIT;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(unavailable(path, &error)),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::Unavailable(format!(
                    "{} is in use by another process: stop that one, or give another folder",
                    path.display(),
                )));
            }
        }
    }
}
