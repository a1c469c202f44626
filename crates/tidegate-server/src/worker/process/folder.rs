use super::uids::TaskUser;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{process, thread};

/// In the folder of each life of a worker: locked for as long as that worker lives.
const LOCK: &str = "lock";
/// How often it is tried to remove a folder in which processes that are being killed may still write.
const REMOVE_TRIES: u32 = 10;
/// Between two tries.
const REMOVE_EVERY: Duration = Duration::from_millis(100);

/// Where this life of the worker makes its work folders.
#[derive(Debug)]
pub(super) struct WorkFolders {
    life: PathBuf,
    next: AtomicU64,
    /// Others see by it that this worker lives, and the kernel lets go of it when it does not.
    _lock: File,
}

/// What one execution may write to, and its code. Removed when it is dropped.
#[derive(Debug)]
pub(super) struct WorkFolder {
    path: PathBuf,
    /// The file with the code, which the task can't change.
    pub(super) code: PathBuf,
}

// === impl WorkFolders ===

impl WorkFolders {
    /// Makes the folder of this life, and removes those of lives that are over.
    pub(super) fn open(base: &Path) -> io::Result<Self> {
        // Others may pass through, to folders of theirs, but not see what is there.
        make(base, 0o711)?;
        let metadata = fs::symlink_metadata(base)?;
        if !metadata.is_dir() || metadata.uid() != rustix::process::geteuid().as_raw() {
            let message = "it is no folder of this user: choose another, or remove it";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
        let base = base.canonicalize()?;
        remove_ended_lives(&base);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let life = base.join(format!("life-{}-{}", process::id(), now.as_nanos()));
        make(&life, 0o711)?;
        let lock = File::create_new(life.join(LOCK))?;
        lock.lock()?;
        Ok(Self { life, next: AtomicU64::new(1), _lock: lock })
    }

    /// A fresh folder with this code in it, for that user when it is another.
    pub(super) fn make(
        &self,
        file_name: &str,
        code: &str,
        user: Option<&TaskUser>,
    ) -> io::Result<WorkFolder> {
        let path = self.life.join(self.next.fetch_add(1, Ordering::Relaxed).to_string());
        make(&path, 0o700)?;
        let file = path.join("code").join(file_name);
        let folder = WorkFolder { path, code: file };
        make(&folder.path.join("code"), 0o755)?;
        fs::write(&folder.code, code)?;
        fs::set_permissions(&folder.code, Permissions::from_mode(0o444))?;
        for writable in folder.writable() {
            make(&writable, 0o700)?;
            if let Some(user) = user {
                chown(&writable, Some(user.uid), Some(user.uid))?;
            }
        }
        if let Some(user) = user {
            // Its group is the task's alone: the task can pass, and no other task can.
            chown(&folder.path, None, Some(user.uid))?;
            fs::set_permissions(&folder.path, Permissions::from_mode(0o710))?;
        }
        Ok(folder)
    }
}

impl Drop for WorkFolders {
    fn drop(&mut self) {
        remove(&self.life);
    }
}

// === impl WorkFolder ===

impl WorkFolder {
    /// Names it among all folders of this machine.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Where the task starts.
    pub(super) fn home(&self) -> PathBuf {
        self.path.join("home")
    }

    /// Its temporary files.
    pub(super) fn temporary(&self) -> PathBuf {
        self.path.join("tmp")
    }

    /// Memory that it shares between its processes, which so counts as files.
    pub(super) fn shared(&self) -> PathBuf {
        self.path.join("shm")
    }

    /// All that it may write to.
    pub(super) fn writable(&self) -> [PathBuf; 3] {
        [self.home(), self.temporary(), self.shared()]
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

fn make(folder: &Path, mode: u32) -> io::Result<()> {
    match DirBuilder::new().mode(mode).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        made => made?,
    }
    // What the process's mask took away.
    fs::set_permissions(folder, Permissions::from_mode(mode))
}

fn remove_ended_lives(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let is_life = entry.file_name().to_string_lossy().starts_with("life-");
        // A life that has not got its lock yet is about to begin.
        let Ok(lock) = File::open(entry.path().join(LOCK)) else { continue };
        if is_life && lock.try_lock().is_ok() {
            remove(&entry.path());
        }
    }
}

/// Removes a folder with all that is in it. What can't be removed is tried again when the next worker starts.
fn remove(folder: &Path) {
    for _ in 0..REMOVE_TRIES {
        match fs::remove_dir_all(folder) {
            Ok(()) => return,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(_) => {}
        }
        // A task can take its own rights away, and nest folders deeper than this process may have files open.
        // These two programs are made for that.
        for (program, args) in [("chmod", ["-R", "u+rwx"]), ("rm", ["-r", "-f"])] {
            let mut command = Command::new(program);
            command.args(args).arg("--").arg(folder).stdin(Stdio::null());
            let _ = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        }
        if !folder.exists() {
            return;
        }
        thread::sleep(REMOVE_EVERY);
    }
    tracing::warn!(folder = %folder.display(), "a work folder could not be removed");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("tidegate-folder-{}-{name}", process::id()))
    }

    #[test]
    fn the_folders_of_lives_that_are_over_go_and_those_of_others_stay() {
        let base = base("lives");
        let other = WorkFolders::open(&base).unwrap();
        let busy = other.make("main.sh", "true", None).unwrap();
        let dead = base.join("life-1-1");
        fs::create_dir_all(dead.join("7/home")).unwrap();
        fs::write(dead.join(LOCK), "").unwrap();
        let stranger = base.join("notes");
        fs::create_dir(&stranger).unwrap();
        let ours = WorkFolders::open(&base).unwrap();
        assert!(!dead.exists());
        assert!(busy.code.exists() && stranger.exists());
        drop((busy, other, ours));
        let left: Vec<_> = fs::read_dir(&base).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn a_folder_goes_with_whatever_was_done_to_it() {
        let base = base("odd");
        let folders = WorkFolders::open(&base).unwrap();
        let folder = folders.make("main.sh", "true", None).unwrap();
        let closed = folder.home().join("closed");
        fs::create_dir(&closed).unwrap();
        fs::write(closed.join("file"), "").unwrap();
        fs::set_permissions(&closed, Permissions::from_mode(0o000)).unwrap();
        // Deeper than a path can be long, and than files may be open.
        let script = "import os\nfor _ in range(3000): os.mkdir('d'); os.chdir('d')";
        let done = Command::new("python3").args(["-c", script]).current_dir(folder.home()).status();
        assert!(done.unwrap().success());
        let path = folder.path().to_owned();
        drop(folder);
        assert!(!path.exists());
        drop(folders);
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn a_place_that_is_not_ours_is_refused() {
        let base = base("link");
        std::os::unix::fs::symlink("/usr", &base).unwrap();
        assert!(WorkFolders::open(&base).is_err());
        fs::remove_file(base).unwrap();
    }
}
