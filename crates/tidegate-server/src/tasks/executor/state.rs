use super::config::ExecutorConfig;
use super::execution::Execution;
use super::execution_table::ExecutionTable;
use super::runner::Runner;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidegate::task::{Ending, ExecutionKey};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;

/// State that all handles of one executor share.
pub(super) struct ExecutorState {
    pub(super) config: ExecutorConfig,
    pub(super) runner: Runner,
    pub(super) runtime: Handle,
    began: Instant,
    table: Mutex<ExecutionTable>,
    /// Wakes the expiry timer earlier than planned.
    pub(super) expiry_moved: Arc<Notify>,
    /// Wakes waiters when an execution has ended.
    pub(super) ended: Notify,
}

// === impl ExecutorState ===

impl ExecutorState {
    pub(super) fn new(config: ExecutorConfig, runner: Runner, runtime: Handle) -> Self {
        let table = ExecutionTable::new(&config);
        Self {
            config,
            runner,
            runtime,
            began: Instant::now(),
            table: Mutex::new(table),
            expiry_moved: Arc::new(Notify::new()),
            ended: Notify::new(),
        }
    }

    /// Time since the start: the clock of slots, leases and reservations.
    pub(super) fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// Converts a time of [`now`](Self::now)'s clock into one that timers wait for.
    pub(super) fn instant(&self, at: Duration) -> Instant {
        self.began + at
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, ExecutionTable> {
        // No holder panics; if one did, each part of the table would still be consistent.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Renews the lease of an execution, and returns it.
    pub(super) fn renew(&self, key: &ExecutionKey, fence: Option<u64>) -> Option<Arc<Execution>> {
        let mut table = self.lock();
        table.slots.renew(key, fence, self.now());
        table.known.get(key).cloned()
    }

    /// Ends an execution. Only the first ending counts.
    pub(super) fn end(&self, execution: &Arc<Execution>, ending: Ending) {
        let mut table = self.lock();
        table.end(execution, ending, self.now());
        drop(table);
        execution.notify();
        self.ended.notify_waiters();
    }
}

impl Drop for ExecutorState {
    fn drop(&mut self) {
        // The timer finds the executor gone, and ends.
        self.expiry_moved.notify_one();
    }
}
