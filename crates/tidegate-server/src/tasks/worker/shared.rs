use super::data_link::{DataLink, Outgoing, UpdateQueue};
use super::dial::ManagerTarget;
use super::followed::Followed;
use super::machine::Machine;
use crate::tasks::executor::Executor;
use crate::tasks::session::{BufferMetrics, WorkerStats};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tidegate::outbox::DestinationQueueStats;
use tidegate::signal::{BackpressureLevel, BackpressureSignal, SignalBoard};
use tidegate::task::ExecutionKey;
use tidegate::{InFlightTracker, MessageClass, Role, Sharing};
use tokio::sync::watch;
use tokio::time::Instant;

/// Managers whose signals are remembered.
const MANAGERS_MAX: usize = 64;

/// State that the tasks of a worker's session share.
pub(super) struct Shared {
    pub(super) executor: Executor,
    pub(super) manager: ManagerTarget,
    pub(super) token: Option<String>,
    pub(super) incarnation: u64,
    pub(super) followed: Followed,
    pub(super) data: DataLink,
    /// Admission of what the manager sends, with the limits of a worker.
    pub(super) tracker: InFlightTracker,
    /// Changes when the worker begins to drain.
    pub(super) draining: watch::Sender<bool>,
    pub(super) connected: watch::Sender<Connected>,
    queue: OnceLock<Box<dyn UpdateQueue>>,
    signals: Mutex<Signals>,
    machine: Mutex<Machine>,
    started: Instant,
}

/// Signals of the managers.
struct Signals {
    board: SignalBoard<(String, u16)>,
    /// Time at which a manager has last asked for a slower pace.
    slowed: Duration,
}

/// Connection of a worker to its manager.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Connected {
    /// Name of the manager, while the worker is connected.
    pub(super) manager: Option<String>,
    /// Last error, while it is not.
    pub(super) error: Option<String>,
    /// The manager will refuse this worker for ever.
    pub(super) is_final: bool,
}

// === impl Shared ===

impl Shared {
    pub(super) fn new(
        executor: Executor,
        manager: ManagerTarget,
        token: Option<String>,
        incarnation: u64,
    ) -> Self {
        Self {
            executor,
            manager,
            token,
            incarnation,
            followed: Followed::default(),
            data: DataLink::default(),
            tracker: InFlightTracker::new(Role::Worker.limits(), Sharing::Strict),
            draining: watch::Sender::new(false),
            connected: watch::Sender::new(Connected::default()),
            queue: OnceLock::new(),
            signals: Mutex::new(Signals {
                board: SignalBoard::new(MANAGERS_MAX),
                slowed: Duration::ZERO,
            }),
            machine: Mutex::new(Machine::default()),
            started: Instant::now(),
        }
    }

    /// Sets the queue to the manager, once.
    pub(super) fn set_queue(&self, queue: impl UpdateQueue + 'static) {
        // The first one stays: it is set once, before the session begins.
        let _ = self.queue.set(Box::new(queue));
    }

    /// Time since the start.
    pub(super) fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Converts a time of [`now`](Self::now) into one that timers wait for.
    pub(super) fn instant(&self, at: Duration) -> Instant {
        self.started.checked_add(at).unwrap_or_else(|| Instant::now() + Duration::from_secs(3_600))
    }

    fn signals(&self) -> MutexGuard<'_, Signals> {
        // No holder panics.
        self.signals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the manager's signal, and wakes the flush loop: a lower level ends its wait.
    pub(super) fn record_signal(&self, signal: BackpressureSignal) {
        let now = self.now();
        let (before, after) = {
            let mut signals = self.signals();
            let before = signals.board.current(now);
            signals.board.record(self.manager.destination(), signal, now);
            let after = signals.board.current(now);
            if after.level > before.level || after.delay_ms > before.delay_ms {
                signals.slowed = now;
            }
            (before.level, after.level)
        };
        if after != before {
            tracing::info!(manager = %self.manager, from = %before, to = %after, "backpressure level");
        }
        self.followed.changed.notify_one();
    }

    /// Forgets the signal of the manager, whose session has ended: the next one begins without.
    pub(super) fn forget_signal(&self) {
        self.signals().board.forget(&self.manager.destination());
        self.followed.changed.notify_one();
    }

    /// Highest signal of all managers that still holds.
    pub(super) fn signal(&self) -> BackpressureSignal {
        self.signals().board.current(self.now())
    }

    pub(super) fn level(&self) -> BackpressureLevel {
        self.signal().level
    }

    /// True when a manager has asked for a slower pace since this update was queued, and still does.
    pub(super) fn has_slowed_since_queued(&self, key: &ExecutionKey) -> bool {
        let Some(queued) = self.followed.queued_at(key) else { return false };
        let signals = self.signals();
        queued < signals.slowed && signals.board.current(self.now()).level > BackpressureLevel::None
    }

    /// Queues the update of an execution. An end has a queue of its own, which data
    /// can't fill.
    pub(super) fn queue_update(&self, key: ExecutionKey, is_end: bool) {
        let class = if is_end { MessageClass::Control } else { MessageClass::Data };
        self.queue(class, Outgoing::Update(key));
    }

    /// Queues a message to the manager. One that is refused or displaced is marked again.
    pub(super) fn queue(&self, class: MessageClass, message: Outgoing) {
        if let Some(queue) = self.queue.get() {
            self.lost(queue.queue(class, message));
        }
    }

    /// Takes a message back that could not be queued or sent.
    pub(super) fn lost(&self, message: Option<Outgoing>) {
        match message {
            Some(Outgoing::Update(key)) => {
                self.followed.take_back(&key, self.level(), self.now());
            }
            Some(Outgoing::Stats) => self.followed.count_dropped(MessageClass::Data),
            Some(Outgoing::Debug) => self.followed.count_dropped(MessageClass::Telemetry),
            None => {}
        }
    }

    /// State of the queue to the manager.
    pub(super) fn queue_stats(&self) -> Option<DestinationQueueStats> {
        self.queue.get()?.stats()
    }

    /// Updates that the queue to the manager can take before it has to drop one.
    pub(super) fn queue_room(&self) -> u64 {
        self.queue.get().map_or(0, |queue| queue.room())
    }

    /// Statistics of the worker now.
    pub(super) fn stats(&self) -> WorkerStats {
        let capacity = self.executor.capacity();
        let mut machine = self.machine.lock().unwrap_or_else(PoisonError::into_inner);
        let reading = machine.read();
        WorkerStats {
            running: capacity.running,
            slots: capacity.max_concurrent,
            cpu: reading.cpu,
            memory_bytes: reading.memory_bytes,
            memory_bytes_max: reading.memory_bytes_max,
            load_1m: reading.load_1m,
            flush_state: flush_state(self.level()).to_owned(),
            updates_waiting: self.followed.waiting().updates,
        }
    }

    /// Metrics of the worker's buffers now.
    pub(super) fn debug(&self) -> BufferMetrics {
        let counts = self.followed.counts();
        let stats = self.queue_stats();
        BufferMetrics {
            merged: counts.merged,
            delayed: counts.delayed,
            dropped: counts.dropped,
            queued: self.queue.get().map_or(0, |queue| queue.ends_waiting())
                + stats.as_ref().map_or(0, |stats| {
                    let queue = &stats.queue;
                    (queue.primary_size + queue.overflow_size + queue.control_size) as u64
                }),
            retried: stats.as_ref().map_or(0, |stats| stats.sender.total_retried),
        }
    }
}

/// Flush state of a level, by the names of the state diagram of AD-37.
pub(super) const fn flush_state(level: BackpressureLevel) -> &'static str {
    match level {
        BackpressureLevel::None => "NO_BACKPRESSURE",
        BackpressureLevel::Throttle => "THROTTLED",
        BackpressureLevel::Batch => "BATCH_ONLY",
        BackpressureLevel::Reject => "REJECT",
    }
}
