use super::dispatch::{ToWorker, WorkerTransport, outgoing_config};
use super::roster::{Roster, WORKERS_MAX, WorkerName};
use super::session_event::SessionOutlet;
use super::stats::Stats;
use super::worker_session::WorkerSession;
use crate::config::TokenDigest;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tidegate::outbox::{DestinationQueueStats, ManagerTotals, OutgoingRequestManager, SendFailure};
use tidegate::signal::LevelConfigError;

/// Workers by name, and what their sessions share.
pub struct WorkerHub {
    pub(super) settings: HubSettings,
    roster: Arc<Roster>,
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
        let (stats, roster) = (Stats::new(settings.updates_max)?, Arc::new(Roster::default()));
        let hub = Arc::new(Self {
            settings,
            roster: Arc::clone(&roster),
            sessions: AtomicU64::new(0),
            stats,
            outlet,
            outbox: OnceLock::new(),
        });
        let transport = WorkerTransport { roster };
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

    /// Number of the next session.
    pub(super) fn next_session(&self) -> u64 {
        self.sessions.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Sessions that have begun.
    pub(super) fn sessions(&self) -> u64 {
        self.sessions.load(Ordering::Relaxed)
    }

    /// The worker of that name.
    pub(super) fn find(&self, name: &str) -> Option<Arc<WorkerSession>> {
        self.roster.find(name)
    }

    /// The worker of that name, connected or not. `None` when there are too many.
    pub(in crate::tasks::manager) fn worker(&self, name: &str) -> Option<Arc<WorkerSession>> {
        self.roster.find_or_add(name)
    }

    /// All workers, by name.
    pub(super) fn workers(&self) -> Vec<Arc<WorkerSession>> {
        self.roster.all()
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
