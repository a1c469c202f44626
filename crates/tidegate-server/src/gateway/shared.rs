use crate::admission::{AlertBoard, RetryBoard};
use crate::chance::Chance;
use crate::config::Config;
use crate::control::{TaskTerms, TaskWatchers};
use crate::ingest::IngestView;
use crate::manager::{ManagerMeters, TaskDesk};
use crate::proxy::Gatekeeper;
use crate::record::{Journal, Scribe};
use crate::telemetry::{MetricsSnapshot, ThreadMetrics};
use crate::upstream::{Fleet, Pool, SlowDestinations};
use http::HeaderValue;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};
use tidegate::InFlightTracker;
use tidegate::retry::RetryBudget;
use tokio::sync::watch;

/// A thread that has not been seen for this long is stuck, and the process is not alive in any useful sense.
const STUCK_AFTER: Duration = Duration::from_secs(10);

/// Where the gateway is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It takes connections and requests.
    Serving,
    /// It takes no more connections and finishes what it has.
    Draining,
}

/// What all threads of the gateway see.
pub struct Shared {
    /// The configuration it was started with.
    pub config: Config,
    /// Who may execute now.
    pub tracker: Arc<InFlightTracker>,
    /// When refused clients should come back.
    pub board: Arc<RetryBoard>,
    /// Who is told of decisions.
    pub journal: Arc<Journal>,
    /// Which alerts hold.
    pub alerts: Arc<AlertBoard>,
    /// Which destinations are slow.
    pub slow: Arc<SlowDestinations>,
    /// Who asks for what priority.
    pub gatekeeper: Gatekeeper,
    /// Where usage records come in, when they do.
    pub ingest: Option<Arc<IngestView>>,
    /// Where tasks are handed in, when they are done here.
    pub tasks: Option<TaskDesk>,
    /// What is counted of them.
    pub task_meters: Option<Arc<ManagerMeters>>,
    /// What may be asked of tasks.
    pub task_terms: TaskTerms,
    /// How many may watch tasks at once.
    pub task_watchers: TaskWatchers,
    /// The upstreams.
    pub fleet: Arc<Fleet>,
    /// This gateway's mark in `Via`, unlike any other's.
    pub via: HeaderValue,
    /// Whether the upstreams are mocks of its own, because none were configured.
    pub demo: bool,
    /// Whether the data port can be reached from elsewhere: what it says of the inside is then for known
    /// clients only.
    pub exposed: bool,
    /// Where it is in its life.
    pub phase: watch::Receiver<Phase>,
    /// One entry a serving thread.
    pub threads: Vec<ThreadState>,
    /// Connections turned away at the connection limit.
    pub connections_refused: AtomicU64,
    /// When it started, for uptimes.
    pub started: Instant,
    /// When it started, by the calendar.
    pub started_at: SystemTime,
}

/// What is known of one serving thread from outside of it.
#[derive(Debug, Default)]
pub struct ThreadState {
    /// What it counts.
    pub metrics: Arc<ThreadMetrics>,
    /// When it was last seen, in milliseconds since the start.
    last_seen_ms: AtomicU64,
}

/// What one serving thread works with.
pub struct ThreadContext {
    /// What it shares with the others.
    pub shared: Arc<Shared>,
    /// Its own connections to upstreams.
    pub pool: Arc<Pool>,
    /// Its own counters.
    pub metrics: Arc<ThreadMetrics>,
    /// What writes its decisions down.
    pub scribe: Arc<Scribe>,
    /// Its own dice.
    pub chance: Chance,
    /// How often its requests may be repeated.
    pub retries: RetryBudget,
}

// === impl ThreadContext ===

impl ThreadContext {
    /// Whether something that failed may be sent again; counts as if it will be.
    #[must_use]
    pub fn may_retry(&self) -> bool {
        self.retries.try_retry(self.shared.started.elapsed())
    }
}

// === impl Shared ===

impl Shared {
    /// Where the gateway is in its life.
    #[must_use]
    pub fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// The counters of all threads, added up.
    #[must_use]
    pub fn metrics(&self) -> MetricsSnapshot {
        let mut snapshot = MetricsSnapshot::default();
        for thread in &self.threads {
            thread.metrics.add_to(&mut snapshot);
        }
        snapshot
    }

    /// Notes that a thread is alive.
    pub fn saw(&self, thread: usize) {
        self.threads[thread].last_seen_ms.store(self.uptime_ms(), Ordering::Relaxed);
    }

    /// The threads that have not been seen for too long.
    pub fn stuck_threads(&self) -> impl Iterator<Item = usize> {
        let oldest = self.uptime_ms().saturating_sub(STUCK_AFTER.as_millis() as u64);
        let seen = self.threads.iter().map(|thread| thread.last_seen_ms.load(Ordering::Relaxed));
        seen.enumerate().filter(move |(_, seen_ms)| *seen_ms < oldest).map(|(index, _)| index)
    }

    fn uptime_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
