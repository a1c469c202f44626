use super::actor::{Actor, StopPhase};
use super::handle::ManagerHandle;
use super::link::ExecutorTarget;
use super::metrics::ManagerMeters;
use super::settings::ManagerSettings;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tidegate::ledger::Ledger;
use tidegate::tasks::TaskStore;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};

/// Commands that wait for the manager's thread. Further ones wait at their handles.
const COMMANDS_MAX: usize = 1_024;
/// Events that wait for the manager's thread. Further ones wait at their senders.
const EVENTS_MAX: usize = 4_096;

/// A running task manager. Ends when it is [shut down](Manager::shutdown) or dropped; a drop does not wait.
pub struct Manager {
    handle: ManagerHandle,
    meters: Arc<ManagerMeters>,
    stop: watch::Sender<StopPhase>,
    thread: JoinHandle<()>,
}

// === impl Manager ===

impl Manager {
    /// Starts the manager's thread, on the runtime that drives its store and its slot ledger. Adopts the tasks of
    /// an earlier process.
    ///
    /// # Errors
    ///
    /// When the system refuses a thread.
    pub fn start<S: TaskStore, L: Ledger>(
        settings: ManagerSettings,
        targets: &[ExecutorTarget],
        store: Arc<S>,
        ledger: Arc<L>,
        runtime: Runtime,
        grace: Duration,
    ) -> io::Result<Self> {
        let (commands, commands_in) = mpsc::channel(COMMANDS_MAX);
        let (events, events_in) = mpsc::channel(EVENTS_MAX);
        let (stop, stopping) = watch::channel(StopPhase::Running);
        let meters = Arc::new(ManagerMeters::default());
        let (actor_meters, targets) = (Arc::clone(&meters), targets.to_vec());
        let thread =
            thread::Builder::new().name("tidegate-manager".to_owned()).spawn(move || {
                runtime.block_on(async move {
                    let actor = Actor::new(settings, &targets, store, ledger, actor_meters, events);
                    actor.run(commands_in, events_in, stopping, grace).await;
                });
                // Attempts that only poll executors elsewhere are not waited for.
                runtime.shutdown_timeout(Duration::from_secs(1));
            })?;
        Ok(Self { handle: ManagerHandle::new(commands), meters, stop, thread })
    }

    /// Handle for submissions and queries.
    #[must_use]
    pub fn handle(&self) -> &ManagerHandle {
        &self.handle
    }

    /// Counters, histograms and gauges.
    #[must_use]
    pub fn meters(&self) -> &Arc<ManagerMeters> {
        &self.meters
    }

    /// Accepts nothing more, lets local executions finish within the grace period, and waits for the thread's end.
    pub fn shutdown(self) {
        self.stop.send_replace(StopPhase::Draining);
        // A thread that panicked has logged it.
        let _ = self.thread.join();
    }
}
