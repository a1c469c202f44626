use super::launch::all_processes;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of users, and so of concurrent tasks of a root worker.
pub(super) const UIDS: u32 = 256;

/// Users of this process's running tasks. Global, because two runners of a process must not share a user.
static TAKEN: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// User of one running task, exclusive until dropped. The kernel counts processes by user, and lets a user signal
/// and read its own processes: with separate users, no task reaches another.
#[derive(Debug)]
pub(super) struct TaskUser {
    pub(super) uid: u32,
}

impl TaskUser {
    /// Takes a free user; `None` when all are in use.
    ///
    /// Skips users that have processes: another worker on this machine may use the same range.
    pub(super) fn take(first: u32) -> Option<Self> {
        let busy: BTreeSet<u32> = all_processes().map(|(_, uid)| uid).collect();
        // Spreads workers that start at the same time over different users.
        let offset = std::process::id() % UIDS;
        let mut taken = taken();
        let uid = (0..UIDS)
            .map(|at| first + (at + offset) % UIDS)
            .find(|uid| !busy.contains(uid) && !taken.contains(uid))?;
        taken.insert(uid);
        Some(Self { uid })
    }
}

impl Drop for TaskUser {
    fn drop(&mut self) {
        taken().remove(&self.uid);
    }
}

fn taken() -> MutexGuard<'static, BTreeSet<u32>> {
    // A set of numbers stays consistent after a panic.
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_tasks_share_a_user() {
        let first = 3_000_000_000;
        let mut all: Vec<_> = (0..UIDS).map(|_| TaskUser::take(first).unwrap()).collect();
        let different: BTreeSet<u32> = all.iter().map(|user| user.uid).collect();
        assert_eq!(different.len() as u32, UIDS);
        assert!(different.iter().all(|uid| (first..first + UIDS).contains(uid)));
        assert!(TaskUser::take(first).is_none(), "all are taken");
        let back = all.pop().unwrap().uid;
        assert_eq!(TaskUser::take(first).unwrap().uid, back);
    }
}
