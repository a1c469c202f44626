use std::sync::Arc;
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

/// Limits on watchers of tasks, by port.
#[derive(Debug)]
pub struct TaskWatchers {
    clients: Arc<Semaphore>,
    operators: Arc<Semaphore>,
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
    /// A permit for one more watcher on the data port; `None` at the limit.
    pub(super) fn client(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.clients).try_acquire_owned().ok()
    }

    /// A permit for one more watcher on the admin port; `None` at the limit.
    pub(super) fn operator(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.operators).try_acquire_owned().ok()
    }
}

impl Default for TaskWatchers {
    fn default() -> Self {
        let (clients, operators) = (CLIENTS_MAX, OPERATORS_MAX);
        Self {
            clients: Arc::new(Semaphore::new(clients)),
            operators: Arc::new(Semaphore::new(operators)),
        }
    }
}
