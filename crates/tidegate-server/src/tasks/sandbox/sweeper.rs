use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Folders that may wait for their removal. When so many do, the next one waits until there is room, and so does
/// the end of its task: tasks can't fill a disk faster than it is swept.
const WAITING_MAX: usize = 64;
/// Longest wait for the removal at the end. The next worker removes the rest.
const ENDED_WITHIN: Duration = Duration::from_secs(5);

/// Removes folders on a thread of its own: the removal of many files takes long, and no slot waits for it.
#[derive(Debug)]
pub(super) struct Sweeper {
    /// Folder to which folders are moved at once, closed to tasks.
    aside: PathBuf,
    next: AtomicU64,
    /// `None` only wakes the thread.
    jobs: SyncSender<Option<PathBuf>>,
    ending: Arc<AtomicBool>,
    ended: Mutex<Receiver<()>>,
}

// === impl Sweeper ===

impl Sweeper {
    /// Starts a sweeper that moves folders to `aside`. `first` and `last` run on its thread, before and after all
    /// removals.
    pub(super) fn start(
        aside: PathBuf,
        first: impl FnOnce() + Send + 'static,
        remove: impl Fn(&Path) + Send + 'static,
        last: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let (jobs, received) = sync_channel::<Option<PathBuf>>(WAITING_MAX);
        let (has_ended, ended) = sync_channel(1);
        let ending = Arc::new(AtomicBool::new(false));
        let is_ending = Arc::clone(&ending);
        thread::Builder::new().name("tidegate-sweeper".to_owned()).spawn(move || {
            first();
            while !is_ending.load(Ordering::Acquire) {
                match received.recv() {
                    Ok(Some(folder)) => remove(&folder),
                    Ok(None) => {}
                    Err(_) => break,
                }
            }
            // Whoever hands over a folder from now on removes it itself.
            drop(received);
            last();
            let _ = has_ended.send(());
        })?;
        Ok(Self { aside, next: AtomicU64::new(1), jobs, ending, ended: Mutex::new(ended) })
    }

    /// Moves a folder aside, and leaves its removal to the thread. Blocks while too many wait. Returns the folder
    /// when it could not be handed over: the caller must remove it.
    pub(super) fn sweep(&self, folder: &Path) -> Result<(), PathBuf> {
        let aside = self.aside.join(self.next.fetch_add(1, Ordering::Relaxed).to_string());
        if fs::rename(folder, &aside).is_err() {
            return Err(folder.to_owned());
        }
        self.jobs.send(Some(aside)).map_err(|refused| refused.0.unwrap_or_default())
    }

    /// Ends the thread after its current removal, and waits for that, but not for long.
    pub(super) fn end(&self) {
        self.ending.store(true, Ordering::Release);
        // A full queue wakes the thread anyway.
        let _ = self.jobs.try_send(None);
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = ended.recv_timeout(ENDED_WITHIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{TryRecvError, channel};

    fn base(name: &str) -> PathBuf {
        let base =
            std::env::temp_dir().join(format!("tidegate-sweep-{}-{name}", std::process::id()));
        fs::create_dir_all(base.join("aside")).unwrap();
        base
    }

    fn folder(base: &Path, name: usize) -> PathBuf {
        let folder = base.join(format!("task-{name}"));
        fs::create_dir_all(folder.join("home")).unwrap();
        folder
    }

    #[test]
    fn a_folder_is_gone_at_once_and_only_a_full_queue_waits() {
        let base = base("full");
        let (allow, allowed) = channel::<()>();
        let (removed, removals) = channel();
        // Each removal waits for the test.
        let remove = move |folder: &Path| {
            let _ = allowed.recv();
            fs::remove_dir_all(folder).unwrap();
            removed.send(()).unwrap();
        };
        let sweeper = Sweeper::start(base.join("aside"), || {}, remove, || {}).unwrap();
        let sweeper = Arc::new(sweeper);
        // One is being removed, and the queue is full; none of them was waited for.
        for nth in 0..=WAITING_MAX {
            let folder = folder(&base, nth);
            sweeper.sweep(&folder).unwrap();
            assert!(!folder.exists());
        }
        assert_eq!(removals.try_recv(), Err(TryRecvError::Empty), "none is removed yet");
        let (one_more, behind) = (folder(&base, 1_000), Arc::clone(&sweeper));
        let (swept, waits) = channel();
        let waiting = thread::spawn(move || {
            behind.sweep(&one_more).unwrap();
            swept.send(()).unwrap();
        });
        assert!(waits.recv_timeout(Duration::from_millis(50)).is_err(), "there is no room");
        allow.send(()).unwrap();
        waits.recv_timeout(Duration::from_secs(30)).unwrap();
        waiting.join().unwrap();
        drop(allow);
        for _ in 0..WAITING_MAX + 2 {
            removals.recv_timeout(Duration::from_secs(30)).unwrap();
        }
        assert_eq!(fs::read_dir(base.join("aside")).unwrap().count(), 0);
        sweeper.end();
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn after_the_end_the_folder_is_handed_back() {
        let base = base("ended");
        let (last, ended) = channel();
        let sweeper =
            Sweeper::start(base.join("aside"), || {}, |_| {}, move || last.send(()).unwrap());
        let sweeper = sweeper.unwrap();
        sweeper.end();
        ended.try_recv().expect("the thread has ended");
        let moved = sweeper.sweep(&folder(&base, 1)).unwrap_err();
        assert!(moved.exists());
        assert_eq!(sweeper.sweep(&base.join("absent")), Err(base.join("absent")));
        fs::remove_dir_all(base).unwrap();
    }
}
