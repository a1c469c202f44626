use super::limits::{SubmissionSettings, TaskWatchers};
use crate::tasks::manager::{ManagerHandle, ManagerMeters, WorkerHub};
use std::sync::Arc;
use std::time::Duration;

/// The HTTP API of tasks, for the ports of a gateway.
pub struct TaskApi {
    pub(super) manager: ManagerHandle,
    pub(super) settings: SubmissionSettings,
    pub(super) watchers: TaskWatchers,
    /// Longest time that a watcher may read nothing.
    pub(super) stall_max: Duration,
    pub(super) meters: Option<Arc<ManagerMeters>>,
    /// Workers that dial, if there is a port for them.
    pub(super) workers: Option<Arc<WorkerHub>>,
}

// === impl TaskApi ===

impl TaskApi {
    /// The API of this manager. A watcher that reads nothing for `stall_max` is dropped.
    #[must_use]
    pub fn new(manager: ManagerHandle, settings: SubmissionSettings, stall_max: Duration) -> Self {
        let watchers = TaskWatchers::default();
        Self { manager, settings, watchers, stall_max, meters: None, workers: None }
    }

    /// The API with the series of the manager.
    #[must_use]
    pub fn with_meters(self, meters: Arc<ManagerMeters>) -> Self {
        Self { meters: Some(meters), ..self }
    }

    /// The API with the workers that dial.
    #[must_use]
    pub fn with_workers(self, workers: Option<Arc<WorkerHub>>) -> Self {
        Self { workers, ..self }
    }
}
