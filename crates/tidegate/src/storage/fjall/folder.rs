use crate::storage::StoreError;
use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const LOCK_FILE: &str = "lock";
const VERSION_FILE: &str = "version";
const VERSION_FILE_NEW: &str = "version.new";
const DATA: &str = "data";
const DATA_NEW: &str = "data.new";

/// Longest wait for the previous process to release the folder.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// A store has others' usage and tasks in it: its folder is its user's alone, and with it all files in it.
const OWN_MODE: u32 = 0o700;

/// Kind of store in a folder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// First words of its version file.
    pub(crate) title: &'static str,
    /// The version that this program writes, and the only one it reads.
    pub(crate) version: u32,
}

/// A folder that this process has locked until the value is dropped.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    kind: Kind,
    /// Held, not read: the operating system lets go of it when this process ends, however it ends.
    _lock: File,
}

// === impl Folder ===

impl Folder {
    /// Takes a folder, and makes it when it is not there.
    pub(crate) fn take(path: &Path, kind: Kind) -> Result<Self, StoreError> {
        let trouble = |error: io::Error| unavailable(path, &error);
        DirBuilder::new().recursive(true).mode(OWN_MODE).create(path).map_err(trouble)?;
        refuse_foreign_content(path)?;
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.join(LOCK_FILE))
            .map_err(trouble)?;
        wait_for_lock(&lock, path)?;
        let folder = Self { path: path.to_owned(), kind, _lock: lock };
        folder.check_version()?;
        folder.close_to_others();
        Ok(folder)
    }

    /// Takes away what other users may do with a folder that was there. A mounted volume may belong to somebody
    /// else and stay as it is: that is told, and no reason not to start.
    fn close_to_others(&self) {
        let folder = self.path.display();
        let is_open = |mode: u32| mode & !OWN_MODE & 0o777 != 0;
        let closed = fs::metadata(&self.path).and_then(|found| {
            let was = found.permissions().mode() & 0o777;
            if is_open(was) {
                fs::set_permissions(&self.path, Permissions::from_mode(was & OWN_MODE))?;
                tracing::info!(%folder, was = format!("{was:o}"), "closed the store's folder to other users");
            }
            Ok(())
        });
        if let Err(error) = closed {
            tracing::warn!(%folder, %error, "other users can read the store's folder: chmod 700 it");
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the engine's files are.
    pub(crate) fn data(&self) -> PathBuf {
        self.path.join(DATA)
    }

    /// Makes the engine's files with `make` when there are none. Killed at any moment, the next start begins
    /// again: they get their name only when they are complete.
    pub(crate) fn create_data(
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
        let Kind { title, version } = self.kind;
        let number = text.strip_prefix(title).and_then(|number| number.strip_prefix(' '));
        match number.and_then(|number| number.trim().parse::<u32>().ok()) {
            Some(known) if known == version => Ok(()),
            Some(other) => Err(StoreError::Unusable(format!(
                "{shown} is of version {other}, and this program knows version {version}: use the program \
                 that wrote it, or another folder"
            ))),
            None => Err(StoreError::Unusable(format!(
                "{shown} has a file {VERSION_FILE:?} of another program, no {title}: give an empty folder"
            ))),
        }
    }

    fn write_version(&self) -> io::Result<()> {
        let new = self.path.join(VERSION_FILE_NEW);
        let mut file = File::create(&new)?;
        writeln!(file, "{} {}", self.kind.title, self.kind.version)?;
        file.sync_all()?;
        fs::rename(&new, self.path.join(VERSION_FILE))?;
        self.sync()
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }
}

pub(crate) fn unavailable(path: &Path, error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Unavailable(format!("{}: {error}", path.display()))
}

/// Refuses a folder that has no version file and is not empty, apart from files that a killed start leaves.
fn refuse_foreign_content(path: &Path) -> Result<(), StoreError> {
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
