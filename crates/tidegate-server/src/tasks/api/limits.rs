use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tidegate::task::TaskLimits;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Most watchers on the data port: each costs a timer and the memory of a few events.
const CLIENTS_MAX: usize = 1_024;

/// Most watchers on the admin port: half of its 256 connections stay free for other requests.
const OPERATORS_MAX: usize = 128;

/// Limits and defaults of submitted tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubmissionSettings {
    /// Limits of a task.
    pub limits: TaskLimits,
    /// Default timeout of one attempt in milliseconds. Default 1 minute.
    pub timeout_ms: u64,
}

/// Watchers of each client that has any.
type Counts = Arc<Mutex<HashMap<Box<str>, usize>>>;

/// Limits on watchers of tasks, by port.
#[derive(Debug)]
pub struct TaskWatchers {
    clients: Arc<Semaphore>,
    operators: Arc<Semaphore>,
    by_client: Counts,
}

/// Permit of one watcher; free again when dropped.
#[derive(Debug)]
pub struct WatcherPermit {
    _slot: OwnedSemaphorePermit,
    /// The client to whom it is counted, and the counts.
    counted: Option<(Box<str>, Counts)>,
}

// === impl SubmissionSettings ===

impl SubmissionSettings {
    /// Longest body of a submission. As JSON libraries escape it, a text of any language takes up to three times
    /// its bytes; the rest is for the names of fields and for spaces.
    #[must_use]
    pub fn body_bytes_max(&self) -> usize {
        const OTHER: usize = 16 << 10;
        let texts = self.limits.code_bytes_max.saturating_add(self.limits.extras_bytes_max);
        texts.saturating_mul(3).saturating_add(OTHER)
    }
}

impl Default for SubmissionSettings {
    fn default() -> Self {
        Self { limits: TaskLimits::default(), timeout_ms: 60_000 }
    }
}

// === impl TaskWatchers ===

impl TaskWatchers {
    /// A permit for one more watcher on the data port; `None` at the limit. A client has at most as many as it
    /// leaves to others, so that none can take them all.
    pub(super) fn client(&self, client: Option<&str>) -> Option<WatcherPermit> {
        let Some(client) = client else {
            return Some(Arc::clone(&self.clients).try_acquire_owned().ok()?.into());
        };
        let mut counts = lock(&self.by_client);
        let count = counts.get(client).copied().unwrap_or(0);
        if count >= self.clients.available_permits() {
            return None;
        }
        let slot = Arc::clone(&self.clients).try_acquire_owned().ok()?;
        counts.insert(client.into(), count + 1);
        let counted = Some((client.into(), Arc::clone(&self.by_client)));
        Some(WatcherPermit { _slot: slot, counted })
    }

    /// A permit for one more watcher on the admin port; `None` at the limit.
    pub(super) fn operator(&self) -> Option<WatcherPermit> {
        Some(Arc::clone(&self.operators).try_acquire_owned().ok()?.into())
    }
}

// === impl WatcherPermit ===

impl From<OwnedSemaphorePermit> for WatcherPermit {
    fn from(slot: OwnedSemaphorePermit) -> Self {
        Self { _slot: slot, counted: None }
    }
}

impl Drop for WatcherPermit {
    fn drop(&mut self) {
        let Some((client, counts)) = &self.counted else { return };
        let mut counts = lock(counts);
        match counts.get_mut(client) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(counts.remove(client)),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Default for TaskWatchers {
    fn default() -> Self {
        let (clients, operators) = (CLIENTS_MAX, OPERATORS_MAX);
        Self {
            clients: Arc::new(Semaphore::new(clients)),
            operators: Arc::new(Semaphore::new(operators)),
            by_client: Arc::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_client_takes_all_watchers_and_each_gets_back_what_it_leaves() {
        let watchers = TaskWatchers::default();
        let all_of = |client| {
            let permits = std::iter::from_fn(|| watchers.client(Some(client)));
            permits.collect::<Vec<_>>()
        };
        let (greedy, second) = (all_of("greedy"), all_of("second"));
        assert_eq!((greedy.len(), second.len()), (512, 256));
        assert!(watchers.client(Some("third")).is_some());
        drop((greedy, second));
        assert_eq!(all_of("third").len(), 512);
        assert!(lock(&watchers.by_client).is_empty(), "nothing is kept of who has none");
        let unnamed: Vec<_> = std::iter::from_fn(|| watchers.client(None)).collect();
        assert_eq!(unnamed.len(), 1_024, "where nobody has a token");
    }
}
