use super::actor::Actor;
use crate::tasks::execution::CapacityReport;
use crate::tasks::manager::sessions::{ProgressBatch, SessionEvent, WorkerSession};
use crate::tasks::manager::unix_time::now_ms;
use std::sync::Arc;
use tidegate::capacity::ExecutorId;
use tidegate::ledger::Ledger;
use tidegate::progress::Progress;
use tidegate::task::ExecutionKey;
use tidegate::tasks::TaskStore;

// === impl Actor ===

impl<S: TaskStore, L: Ledger> Actor<S, L> {
    /// Handles an event of a worker's session.
    pub(super) fn take_session_event(&mut self, event: SessionEvent) {
        match event {
            SessionEvent::Up { worker, report } => {
                if let (Some(id), Some(report)) = (self.add_worker(worker), report) {
                    self.reported(id, Ok(*report));
                }
            }
            SessionEvent::Reported { name, report } => {
                if let Some(id) = self.executors.find(&name) {
                    self.reported(id, Ok(*report));
                }
            }
            SessionEvent::Down { name } => {
                if let Some(id) = self.executors.find(&name) {
                    self.reported(id, Err("its session has ended".to_owned()));
                }
            }
        }
    }

    /// Takes in a report that a worker pushed. Like the answer to a probe that was sent and answered just now.
    fn reported(&mut self, id: ExecutorId, report: Result<CapacityReport, String>) {
        let changes = self.queue.changes(id);
        self.probed(id, report, changes);
    }

    fn add_worker(&mut self, worker: Arc<WorkerSession>) -> Option<ExecutorId> {
        let hub = Arc::clone(self.hub.as_ref()?);
        let queue = &self.queue;
        self.executors.add_worker(&hub, worker, |id| queue.own_executions(id) == 0)
    }

    /// The executor of that name. An unknown one may be a worker that has not yet joined again.
    pub(super) fn find_executor(&mut self, name: &str) -> Option<ExecutorId> {
        if let Some(id) = self.executors.find(name) {
            return Some(id);
        }
        let worker = self.hub.as_ref()?.worker(name)?;
        self.add_worker(worker)
    }

    /// Takes in progress of workers' executions.
    pub(super) fn take_progress(&mut self, batch: ProgressBatch) {
        for (key, progress) in batch {
            self.progressed(&key, &progress);
        }
    }

    /// Takes in progress of an execution. That of an attempt that is over changes nothing.
    pub(super) fn progressed(&mut self, key: &ExecutionKey, progress: &Progress) {
        let Some(ticket) = self.tasks.ticket(&key.task) else { return };
        if let Some(entry) = self.tasks.get_mut(ticket)
            && entry.record().state.attempt == key.attempt
        {
            entry.add_progress(progress, now_ms());
        }
    }
}
