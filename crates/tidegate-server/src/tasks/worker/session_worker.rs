use super::dial::ManagerTarget;
use super::flush::{flush_forever, report_forever};
use super::followed::FlushCounts;
use super::run::keep_session;
use super::shared::{Shared, flush_state};
use super::transport::ManagerQueue;
use crate::pulse::Pulse;
use crate::tasks::executor::{Drained, Executor, ExecutorConfig, ExecutorConfigError, Runner};
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tidegate::outbox::DestinationQueueStats;
use tidegate::signal::BackpressureLevel;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Time for the last ends to become durable at the manager, after the last execution has ended.
const LAST_ACKS: Duration = Duration::from_secs(5);

/// An executor whose manager it dials, on a thread of its own. Opens no port. Dropped, it ends at once.
pub struct SessionWorker {
    shared: Arc<Shared>,
    stop: oneshot::Sender<Duration>,
    thread: JoinHandle<Drained>,
    pulse: Pulse,
}

/// Manager, identity and executor of a worker.
pub struct WorkerSettings {
    /// The manager.
    pub manager: ManagerTarget,
    /// Token for the manager.
    pub token: Option<String>,
    /// The executor; its id is the worker's name.
    pub executor: ExecutorConfig,
}

/// Error that keeps a worker from starting. Nothing is left running.
#[derive(Debug, thiserror::Error)]
pub enum SessionWorkerError {
    /// Setting outside of its range.
    #[error("{0}")]
    Config(ExecutorConfigError),
    /// The system refused a thread or a descriptor.
    #[error("can't start: {0}")]
    System(#[from] io::Error),
}

/// State of a worker's link to its manager.
#[derive(Clone, Debug)]
pub struct WorkerLinkView {
    /// Name of the manager, while the worker is connected.
    pub manager: Option<String>,
    /// Last error, while it is not.
    pub error: Option<String>,
    /// The manager refuses this worker for good.
    pub is_refused: bool,
    /// Backpressure level that the worker follows.
    pub level: BackpressureLevel,
    /// Flush state of that level.
    pub flush_state: &'static str,
    /// Counts of updates.
    pub counts: FlushCounts,
    /// Executions that the manager follows.
    pub followed: usize,
    /// Queue to the manager, once it was used.
    pub queue: Option<DestinationQueueStats>,
}

// === impl SessionWorker ===

impl SessionWorker {
    /// Starts a worker. It connects in the background, and again whenever its connection fails.
    ///
    /// # Errors
    ///
    /// When a setting is out of range, or the system refuses a thread.
    pub fn start(settings: WorkerSettings, runner: Runner) -> Result<Self, SessionWorkerError> {
        let WorkerSettings { manager, token, executor } = settings;
        if let Some(error) = executor.errors().into_iter().next() {
            return Err(SessionWorkerError::Config(error));
        }
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let executor = Executor::start(executor, runner, runtime.handle().clone());
        let shared = Arc::new(Shared::new(executor, manager, token, incarnation()));
        let (stop, stopped) = oneshot::channel();
        let pulse = Pulse::new();
        let (beating, running) = (pulse.clone(), Arc::clone(&shared));
        let thread = thread::Builder::new()
            .name("tidegate-worker".to_owned())
            .spawn(move || run(&runtime, running, stopped, &beating))?;
        Ok(Self { shared, stop, thread, pulse })
    }

    /// The signs of life of its thread.
    #[must_use]
    pub fn pulse(&self) -> Pulse {
        self.pulse.clone()
    }

    /// The executor.
    #[must_use]
    pub fn executor(&self) -> &Executor {
        &self.shared.executor
    }

    /// State of the link to the manager now.
    #[must_use]
    pub fn link(&self) -> WorkerLinkView {
        let connected = self.shared.connected.borrow().clone();
        let level = self.shared.level();
        WorkerLinkView {
            manager: connected.manager,
            error: connected.error,
            is_refused: connected.is_final,
            level,
            flush_state: flush_state(level),
            counts: self.shared.followed.counts(),
            followed: self.shared.followed.len(),
            queue: self.shared.queue_stats(),
        }
    }

    /// Waits up to `limit` for the first connection, or the first error.
    pub fn wait_for_link(&self, limit: Duration) -> WorkerLinkView {
        let until = std::time::Instant::now() + limit;
        loop {
            let link = self.link();
            let is_known = link.manager.is_some() || link.error.is_some();
            if is_known || std::time::Instant::now() >= until {
                return link;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Accepts nothing more, lets executions finish within the grace period, stops the rest, reports all ends, and
    /// waits for the end.
    pub fn shutdown(self, grace: Duration) -> Drained {
        let _ = self.stop.send(grace);
        // A thread that panicked has logged it.
        self.thread.join().unwrap_or(Drained { stopped: 0, left: 0 })
    }
}

fn run(
    runtime: &Runtime,
    shared: Arc<Shared>,
    stopped: oneshot::Receiver<Duration>,
    pulse: &Pulse,
) -> Drained {
    let none = Drained { stopped: 0, left: 0 };
    runtime.block_on(async {
        pulse.beat_here();
        let (queue, mut hand_back) = match ManagerQueue::new(&shared) {
            Ok(made) => made,
            Err(error) => {
                tracing::error!(%error, "the queue to the manager can't be made");
                return none;
            }
        };
        shared.set_queue(queue);
        let taking_back = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Some(failed) = hand_back.recv().await {
                taking_back.lost(Some(failed.error.message));
            }
        });
        tokio::spawn(flush_forever(Arc::clone(&shared)));
        tokio::spawn(report_forever(Arc::clone(&shared)));
        tokio::spawn(keep_session(Arc::clone(&shared)));
        let Ok(grace) = stopped.await else { return none };
        let draining = shared.executor.drain(grace);
        let drained = tokio::join!(draining, async {
            // After the first poll of the drain, so that the capacity says so.
            tokio::task::yield_now().await;
            shared.draining.send_replace(true);
        });
        let _ = timeout(LAST_ACKS, all_acked(&shared)).await;
        drained.0
    })
}

/// Waits until the manager has every end, or can't be told.
async fn all_acked(shared: &Shared) {
    while shared.followed.len() > 0 && shared.connected.borrow().manager.is_some() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Number of this process among those of one worker: milliseconds of Unix time, unless the clock is set back.
fn incarnation() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
