use super::worker_session::WorkerSession;
use crate::tasks::execution::CapacityReport;
use std::sync::Arc;
use tidegate::progress::Progress;
use tidegate::task::ExecutionKey;
use tokio::sync::mpsc;

/// Events of sessions that wait for the manager's thread. Further ones wait at their sessions.
const EVENTS_MAX: usize = 1_024;
/// Batches of progress that wait for the manager's thread. Few, because the buffer before them merges and tells
/// the workers how full it is.
const PROGRESS_MAX: usize = 2;

/// Report of a session to the manager's thread.
pub(in crate::tasks::manager) enum SessionEvent {
    /// A worker has joined.
    Up {
        /// The worker.
        worker: Arc<WorkerSession>,
        /// Its capacity.
        report: Option<Box<CapacityReport>>,
    },
    /// A worker has reported its capacity.
    Reported {
        /// Name of the worker.
        name: Box<str>,
        /// Its capacity.
        report: Box<CapacityReport>,
    },
    /// The session of a worker has ended.
    Down {
        /// Name of the worker.
        name: Box<str>,
    },
}

/// Progress of executions.
pub(in crate::tasks::manager) type ProgressBatch = Vec<(ExecutionKey, Progress)>;

/// Channels from the sessions to the manager's thread. Progress has its own, so that nothing waits behind it.
#[derive(Clone)]
pub(in crate::tasks::manager) struct SessionOutlet {
    pub(super) events: mpsc::Sender<SessionEvent>,
    pub(super) progress: mpsc::Sender<ProgressBatch>,
}

/// Receiving ends of a [`SessionOutlet`].
pub(in crate::tasks::manager) struct SessionInlet {
    pub(in crate::tasks::manager) events: mpsc::Receiver<SessionEvent>,
    pub(in crate::tasks::manager) progress: mpsc::Receiver<ProgressBatch>,
}

/// Channels between sessions and the manager's thread.
pub(in crate::tasks::manager) fn session_channels() -> (SessionOutlet, SessionInlet) {
    let (events, events_in) = mpsc::channel(EVENTS_MAX);
    let (progress, progress_in) = mpsc::channel(PROGRESS_MAX);
    let outlet = SessionOutlet { events, progress };
    (outlet, SessionInlet { events: events_in, progress: progress_in })
}
