use super::worker_session::WorkerSession;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidegate::outbox::Destination;

/// Most workers that a manager knows at once.
pub(super) const WORKERS_MAX: usize = 4_096;

/// Workers by name, connected or not.
#[derive(Default)]
pub(super) struct Roster {
    workers: Mutex<BTreeMap<Box<str>, Arc<WorkerSession>>>,
    /// Names of workers that nothing is dispatched to, as operators have set.
    drained: Mutex<BTreeSet<Box<str>>>,
}

/// Name of a worker, as the destination of messages.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkerName(Box<str>);

// === impl Roster ===

impl Roster {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Box<str>, Arc<WorkerSession>>> {
        // No holder panics.
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The worker of that name.
    pub(super) fn find(&self, name: &str) -> Option<Arc<WorkerSession>> {
        self.lock().get(name).cloned()
    }

    /// The worker of that name, new if it is unknown. `None` when there are too many.
    pub(super) fn find_or_add(&self, name: &str) -> Option<Arc<WorkerSession>> {
        let mut workers = self.lock();
        if let Some(worker) = workers.get(name) {
            return Some(Arc::clone(worker));
        }
        if workers.len() >= WORKERS_MAX {
            workers.retain(|_, worker| !worker.is_idle());
        }
        if workers.len() >= WORKERS_MAX {
            return None;
        }
        let worker = Arc::new(WorkerSession::new(name));
        worker.set_drained(self.drained().contains(name));
        workers.insert(name.into(), Arc::clone(&worker));
        Some(worker)
    }

    fn drained(&self) -> MutexGuard<'_, BTreeSet<Box<str>>> {
        // No holder panics.
        self.drained.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops or resumes the dispatch to a worker, also one that connects later. Returns the worker if it is known.
    pub(super) fn set_drained(&self, name: &str, drained: bool) -> Option<Arc<WorkerSession>> {
        // Locked first, as for a new worker: it gets this state or the one before it, and is found.
        let worker = {
            let workers = self.lock();
            match drained {
                true => self.drained().insert(name.into()),
                false => self.drained().remove(name),
            };
            workers.get(name).cloned()
        };
        worker.inspect(|worker| worker.set_drained(drained))
    }

    /// All workers, by name.
    pub(super) fn all(&self) -> Vec<Arc<WorkerSession>> {
        self.lock().values().cloned().collect()
    }
}

// === impl WorkerName ===

impl WorkerName {
    /// Longest name, in bytes.
    const BYTES_MAX: usize = 64;

    /// A name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True for a name that a worker may have: 1 … 64 letters, digits and `. _ : -`.
    #[must_use]
    pub fn is_valid(name: &str) -> bool {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
        (1..=Self::BYTES_MAX).contains(&name.len()) && name.bytes().all(allowed)
    }
}

impl Destination for WorkerName {
    fn host(&self) -> String {
        self.0.to_string()
    }

    fn port(&self) -> u16 {
        0
    }
}
