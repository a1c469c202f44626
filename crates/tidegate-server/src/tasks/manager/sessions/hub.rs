use super::dispatch::{ToWorker, WorkerTransport, outgoing_config};
use super::session_event::SessionOutlet;
use super::stats::Stats;
use super::worker_session::WorkerSession;
use crate::config::TokenDigest;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tidegate::outbox::{
    Destination, DestinationQueueStats, ManagerTotals, OutgoingRequestManager, SendFailure,
};
use tidegate::signal::LevelConfigError;

/// Most workers that a manager knows at once.
const WORKERS_MAX: usize = 4_096;

/// Workers by name, and what their sessions share.
pub struct WorkerHub {
    pub(super) settings: HubSettings,
    workers: Mutex<BTreeMap<Box<str>, Arc<WorkerSession>>>,
    sessions: AtomicU64,
    pub(super) stats: Stats,
    pub(super) outlet: SessionOutlet,
    outbox: OnceLock<OutgoingRequestManager<WorkerTransport>>,
}

/// Settings of sessions.
#[derive(Clone, Debug, Default)]
pub struct HubSettings {
    /// Name of the manager.
    pub manager: String,
    /// Lease of executions: the longest silence of a session.
    pub lease: Duration,
    /// Digests of the tokens of workers. Without any a worker needs none.
    pub tokens: BTreeSet<TokenDigest>,
    /// Names that no worker may have: those of other executors.
    pub reserved_names: BTreeSet<String>,
    /// Updates that may wait for the manager.
    pub updates_max: u64,
}

/// Name of a worker, as the destination of messages.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WorkerName(Box<str>);

/// Outcome of a message to a worker.
pub(in crate::tasks::manager) enum Told {
    /// Written to the worker's connection.
    Sent,
    /// The worker has not received it.
    Unsent,
    /// The worker may have received it.
    Unknown(String),
}

// === impl WorkerHub ===

impl WorkerHub {
    /// A hub without workers, on the current runtime.
    ///
    /// # Errors
    ///
    /// When the levels of the buffer are not valid.
    pub(in crate::tasks::manager) fn new(
        settings: HubSettings,
        outlet: SessionOutlet,
    ) -> Result<Arc<Self>, LevelConfigError> {
        let stats = Stats::new(settings.updates_max)?;
        let hub = Arc::new(Self {
            settings,
            workers: Mutex::default(),
            sessions: AtomicU64::new(0),
            stats,
            outlet,
            outbox: OnceLock::new(),
        });
        let transport = WorkerTransport { hub: Arc::downgrade(&hub) };
        match OutgoingRequestManager::new(transport, outgoing_config(WORKERS_MAX)) {
            Ok((outbox, mut hand_back)) => {
                // Renewals alone have nobody that waits for them, and the next one follows soon.
                tokio::spawn(async move { while hand_back.recv().await.is_some() {} });
                let _ = hub.outbox.set(outbox);
            }
            Err(error) => tracing::error!(%error, "no queues to workers"),
        }
        Ok(hub)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Box<str>, Arc<WorkerSession>>> {
        // No holder panics.
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of the next session.
    pub(super) fn next_session(&self) -> u64 {
        self.sessions.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The worker of that name.
    pub(super) fn find(&self, name: &str) -> Option<Arc<WorkerSession>> {
        self.lock().get(name).cloned()
    }

    /// The worker of that name, connected or not. `None` when there are too many.
    pub(in crate::tasks::manager) fn worker(&self, name: &str) -> Option<Arc<WorkerSession>> {
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
        workers.insert(name.into(), Arc::clone(&worker));
        Some(worker)
    }

    /// All workers, by name.
    pub(super) fn workers(&self) -> Vec<Arc<WorkerSession>> {
        self.lock().values().cloned().collect()
    }

    /// Sends a message to a worker, and waits until it is written.
    pub(in crate::tasks::manager) async fn tell(&self, worker: &str, message: ToWorker) -> Told {
        let Some(outbox) = self.outbox.get() else { return Told::Unsent };
        let class = message.class();
        match outbox.send(&WorkerName::new(worker), class, message).await {
            Ok(()) => Told::Sent,
            Err(error) if error.maybe_delivered => Told::Unknown(cause(&error.cause)),
            Err(_) => Told::Unsent,
        }
    }

    /// Queues a message to a worker that nobody waits for.
    pub(in crate::tasks::manager) fn queue(&self, worker: &str, message: ToWorker) {
        if let Some(outbox) = self.outbox.get() {
            let class = message.class();
            // A full control lane means that the worker does not read; its session ends by that.
            let _ = outbox.enqueue(&WorkerName::new(worker), class, message);
        }
    }

    /// Queue to a worker, once it was used.
    pub(super) fn queue_stats(&self, worker: &str) -> Option<DestinationQueueStats> {
        self.outbox.get()?.stats_of(&WorkerName::new(worker))
    }

    /// Totals of the queues to workers.
    pub(super) fn queue_totals(&self) -> ManagerTotals {
        self.outbox.get().map(OutgoingRequestManager::totals).unwrap_or_default()
    }
}

fn cause<E: std::fmt::Display>(cause: &SendFailure<E>) -> String {
    match cause {
        SendFailure::Transport(error) => error.to_string(),
        other => other.to_string(),
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
