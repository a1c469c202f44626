use super::sweeper::Sweeper;
use super::uids::TaskUser;
use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{process, thread};

/// Prefix of the folder of each worker process.
const PREFIX: &str = "process-";
/// Lock file in the folder of each worker process, locked while that process lives.
const LOCK: &str = "lock";
/// Folder in the folder of each worker process with what waits for its removal.
const ASIDE: &str = "swept";
/// Attempts to remove a folder in which processes that are being killed may still write.
const REMOVE_TRIES: u32 = 10;
/// Interval between two attempts.
const REMOVE_EVERY: Duration = Duration::from_millis(100);

/// Folder in which this worker process creates its work folders.
#[derive(Debug)]
pub(super) struct WorkFolders {
    process_folder: PathBuf,
    next: AtomicU64,
    sweeper: Arc<Sweeper>,
}

/// Work folder of one execution with its code. Moved aside on drop, and removed in the background.
#[derive(Debug)]
pub(super) struct WorkFolder {
    path: PathBuf,
    /// File with the code; the task can't change it.
    pub(super) code: PathBuf,
    sweeper: Arc<Sweeper>,
}

// === impl WorkFolders ===

impl WorkFolders {
    /// Creates the folder of this process, and removes those of ended processes in the background.
    pub(super) fn open(base: &Path) -> io::Result<Self> {
        // Other users may pass through to their folders, but not list the content.
        create(base, 0o711)?;
        let metadata = fs::symlink_metadata(base)?;
        if !metadata.is_dir() || metadata.uid() != rustix::process::geteuid().as_raw() {
            let message = "not a folder of this user: choose another, or remove it";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
        }
        let base = base.canonicalize()?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let process_folder = base.join(format!("{PREFIX}{}-{}", process::id(), now.as_nanos()));
        create(&process_folder, 0o711)?;
        let lock = File::create_new(process_folder.join(LOCK))?;
        lock.lock()?;
        let aside = process_folder.join(ASIDE);
        // Closed to tasks: the next task may have the user of the last.
        create(&aside, 0o700)?;
        let own = process_folder.clone();
        let remove_own = move || {
            remove(&own);
            // Shows other workers that this process lives; the kernel releases it with the process.
            drop(lock);
        };
        let first = move || remove_ended_processes(&base);
        let sweeper = Arc::new(Sweeper::start(aside, first, remove, remove_own)?);
        Ok(Self { process_folder, next: AtomicU64::new(1), sweeper })
    }

    /// Creates a work folder with this code, owned by `user` if that is not the worker's own.
    pub(super) fn create(
        &self,
        file_name: &str,
        code: &str,
        user: Option<&TaskUser>,
    ) -> io::Result<WorkFolder> {
        let path = self.process_folder.join(self.next.fetch_add(1, Ordering::Relaxed).to_string());
        create(&path, 0o700)?;
        let file = path.join("code").join(file_name);
        let folder = WorkFolder { path, code: file, sweeper: Arc::clone(&self.sweeper) };
        create(&folder.path.join("code"), 0o755)?;
        fs::write(&folder.code, code)?;
        fs::set_permissions(&folder.code, Permissions::from_mode(0o444))?;
        for writable in folder.writable() {
            create(&writable, 0o700)?;
            if let Some(user) = user {
                chown(&writable, Some(user.uid), Some(user.uid))?;
            }
        }
        if let Some(user) = user {
            // The group is the task's alone: this task can pass, and no other.
            chown(&folder.path, None, Some(user.uid))?;
            fs::set_permissions(&folder.path, Permissions::from_mode(0o710))?;
        }
        Ok(folder)
    }
}

impl Drop for WorkFolders {
    fn drop(&mut self) {
        self.sweeper.end();
    }
}

// === impl WorkFolder ===

impl WorkFolder {
    /// Path of the folder, unique on this machine.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The task's working directory.
    pub(super) fn home(&self) -> PathBuf {
        self.path.join("home")
    }

    /// Folder of its temporary files.
    pub(super) fn temporary(&self) -> PathBuf {
        self.path.join("tmp")
    }

    /// Shared memory of its processes, which thereby counts as files.
    pub(super) fn shared(&self) -> PathBuf {
        self.path.join("shm")
    }

    /// Folders that it may write to.
    pub(super) fn writable(&self) -> [PathBuf; 3] {
        [self.home(), self.temporary(), self.shared()]
    }
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        if let Err(left) = self.sweeper.sweep(&self.path) {
            remove(&left);
        }
    }
}

fn create(folder: &Path, mode: u32) -> io::Result<()> {
    match DirBuilder::new().mode(mode).create(folder) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        created => created?,
    }
    // Restores the bits that the umask removed.
    fs::set_permissions(folder, Permissions::from_mode(mode))
}

fn remove_ended_processes(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let is_process = entry.file_name().to_string_lossy().starts_with(PREFIX);
        // A process without its lock file is about to start.
        let Ok(lock) = File::open(entry.path().join(LOCK)) else { continue };
        if is_process && lock.try_lock().is_ok() {
            remove(&entry.path());
        }
    }
}

/// Removes a folder and its content. The next worker retries what can't be removed.
fn remove(folder: &Path) {
    for _ in 0..REMOVE_TRIES {
        match fs::remove_dir_all(folder) {
            Ok(()) => return,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(_) => {}
        }
        // A task can remove its own permissions, and nest folders deeper than this process may have open files.
        // These two programs handle both.
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
    tracing::warn!(folder = %folder.display(), "can't remove a work folder");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("tidegate-folder-{}-{name}", process::id()))
    }

    fn wait_until(mut done: impl FnMut() -> bool) {
        let start = std::time::Instant::now();
        while !done() {
            assert!(start.elapsed() < Duration::from_secs(60), "never");
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn folders_of_ended_processes_are_removed_and_others_stay() {
        let base = base("processes");
        let other = WorkFolders::open(&base).unwrap();
        let busy = other.create("main.sh", "true", None).unwrap();
        let dead = base.join("process-1-1");
        fs::create_dir_all(dead.join("7/home")).unwrap();
        fs::write(dead.join(LOCK), "").unwrap();
        let stranger = base.join("notes");
        fs::create_dir(&stranger).unwrap();
        let own = WorkFolders::open(&base).unwrap();
        wait_until(|| !dead.exists());
        assert!(busy.code.exists() && stranger.exists());
        drop((busy, other, own));
        let left: Vec<_> = fs::read_dir(&base).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn a_folder_is_removed_whatever_its_content() {
        let base = base("odd");
        let folders = WorkFolders::open(&base).unwrap();
        let folder = folders.create("main.sh", "true", None).unwrap();
        let closed = folder.home().join("closed");
        fs::create_dir(&closed).unwrap();
        fs::write(closed.join("file"), "").unwrap();
        fs::set_permissions(&closed, Permissions::from_mode(0o000)).unwrap();
        // Deeper than a path can be long, and than files may be open.
        let script = "import os\nfor _ in range(3000): os.mkdir('d'); os.chdir('d')";
        let done = Command::new("python3").args(["-c", script]).current_dir(folder.home()).status();
        assert!(done.unwrap().success());
        let path = folder.path().to_owned();
        let aside = path.parent().unwrap().join(ASIDE);
        drop(folder);
        assert!(!path.exists(), "moved at once");
        wait_until(|| fs::read_dir(&aside).unwrap().next().is_none());
        drop(folders);
        assert_eq!(fs::read_dir(&base).unwrap().count(), 0);
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn a_base_of_another_user_is_refused() {
        let base = base("link");
        std::os::unix::fs::symlink("/usr", &base).unwrap();
        assert!(WorkFolders::open(&base).is_err());
        fs::remove_file(base).unwrap();
    }
}
