use super::launch::everybody;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// How many users there are to choose from, and so how many tasks of a worker that is root can run at one time.
pub(super) const UIDS: u32 = 256;

/// Users that tasks of this process run as. Of the process and not of a runner: two runners must not share one.
static TAKEN: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// A user that nobody else has until this is dropped. The kernel counts processes by user, and lets a user signal
/// and read its own: with one for each task, none gets at another.
#[derive(Debug)]
pub(super) struct TaskUser {
    pub(super) uid: u32,
}

impl TaskUser {
    /// One that is free. None when all are taken.
    ///
    /// Users that have processes are passed over: another worker on this machine may have the same range.
    pub(super) fn take(first: u32) -> Option<Self> {
        let busy: BTreeSet<u32> = everybody().map(|(_, uid)| uid).collect();
        // Workers that start at the same time should not all begin with the same user.
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
    // A set of numbers is whole whatever panicked.
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_gets_a_user_that_another_has() {
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
