use std::sync::Arc;
use tidegate::task::TaskLimits;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Who may watch tasks on the data port at once: each costs a timer and a few events of memory.
const CLIENTS_MAX: usize = 1_024;

/// And on the admin port, which has 256 connections: half of them stay for whoever does not watch.
const OPERATORS_MAX: usize = 128;

/// What may be asked of tasks, and what holds where nothing is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskTerms {
    /// The most that a task may ask for.
    pub limits: TaskLimits,
    /// How long one attempt may run when nothing is said. Default a minute.
    pub timeout_ms: u64,
}

/// How many may watch tasks at once, on either port.
#[derive(Debug)]
pub struct TaskWatchers {
    clients: Arc<Semaphore>,
    operators: Arc<Semaphore>,
}

// === impl TaskTerms ===

impl TaskTerms {
    /// The longest body of a submission. Escaped as JSON libraries do, a text of any language takes up to three
    /// times its bytes; the rest is for the names of fields and for spaces.
    #[must_use]
    pub fn body_bytes_max(&self) -> usize {
        const OTHER: usize = 16 << 10;
        let texts = self.limits.code_bytes_max.saturating_add(self.limits.extras_bytes_max);
        texts.saturating_mul(3).saturating_add(OTHER)
    }
}

impl Default for TaskTerms {
    fn default() -> Self {
        Self { limits: TaskLimits::default(), timeout_ms: 60_000 }
    }
}

// === impl TaskWatchers ===

impl TaskWatchers {
    /// A place for one more client that watches; `None` when there is none.
    pub(super) fn client(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.clients).try_acquire_owned().ok()
    }

    /// A place for one more operator that watches; `None` when there is none.
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
