use super::actor::{Actor, StopPhase};
use super::handle::ManagerHandle;
use super::link::ExecutorTarget;
use super::metrics::ManagerMeters;
use super::sessions::{HubSettings, SessionPort, WorkerHub, session_channels};
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
    hub: Option<Arc<WorkerHub>>,
    stop: watch::Sender<StopPhase>,
    thread: JoinHandle<()>,
}

/// Executors of a manager.
pub struct ManagerExecutors {
    /// Executors that the manager calls.
    pub targets: Vec<ExecutorTarget>,
    /// Port for workers, which dial the manager.
    pub workers: Option<(SessionPort, HubSettings)>,
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
        executors: ManagerExecutors,
        store: Arc<S>,
        ledger: Arc<L>,
        runtime: Runtime,
        grace: Duration,
    ) -> io::Result<Self> {
        let (commands, commands_in) = mpsc::channel(COMMANDS_MAX);
        let (events, events_in) = mpsc::channel(EVENTS_MAX);
        let (stop, stopping) = watch::channel(StopPhase::Running);
        let meters = Arc::new(ManagerMeters::default());
        let actor_meters = Arc::clone(&meters);
        let ManagerExecutors { targets, workers } = executors;
        let (outlet, sessions) = session_channels();
        let hub = {
            // Sessions are tasks of the runtime that the thread will drive.
            let _context = runtime.enter();
            let open = |(port, settings): (SessionPort, HubSettings)| {
                let hub = WorkerHub::new(settings, outlet).map_err(io::Error::other)?;
                port.serve(Arc::clone(&hub))?;
                Ok::<_, io::Error>(hub)
            };
            workers.map(open).transpose()?
        };
        let actor_hub = hub.clone();
        let thread =
            thread::Builder::new().name("tidegate-manager".to_owned()).spawn(move || {
                runtime.block_on(async move {
                    let parts = (actor_meters, events, actor_hub);
                    let actor = Actor::new(settings, &targets, store, ledger, parts);
                    actor.run(commands_in, events_in, sessions, (stopping, grace)).await;
                });
                // Attempts that only poll executors elsewhere are not waited for.
                runtime.shutdown_timeout(Duration::from_secs(1));
            })?;
        Ok(Self { handle: ManagerHandle::new(commands), meters, hub, stop, thread })
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

    /// Workers that dial, if there is a port for them.
    #[must_use]
    pub fn workers(&self) -> Option<&Arc<WorkerHub>> {
        self.hub.as_ref()
    }

    /// Accepts nothing more, lets local executions finish within the grace period, and waits for the thread's end.
    pub fn shutdown(self) {
        self.stop.send_replace(StopPhase::Draining);
        // A thread that panicked has logged it.
        let _ = self.thread.join();
    }
}
