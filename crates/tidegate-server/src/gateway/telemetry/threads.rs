use super::{MetricsSnapshot, ThreadMetrics};
use crate::gateway::buffer::BufferBudget;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

/// The age of a thread's last sign of life above which the thread is stuck, and the process with it.
const STUCK_AFTER: Duration = Duration::from_secs(10);

/// The io threads of a gateway: their counters and their signs of life.
#[derive(Debug)]
pub struct IoThreads {
    threads: Vec<ThreadState>,
    connections_refused: AtomicU64,
    buffers: Arc<BufferBudget>,
    started: Instant,
    started_at: SystemTime,
}

#[derive(Debug, Default)]
struct ThreadState {
    metrics: Arc<ThreadMetrics>,
    /// Milliseconds from the start to the last sign of life.
    last_seen_ms: AtomicU64,
}

// === impl IoThreads ===

impl IoThreads {
    /// This many threads, which start now, with the budget of what their clients do not take.
    #[must_use]
    pub(crate) fn new(count: usize, buffers: BufferBudget) -> Self {
        Self {
            threads: (0..count).map(|_| ThreadState::default()).collect(),
            connections_refused: AtomicU64::new(0),
            buffers: Arc::new(buffers),
            started: Instant::now(),
            started_at: SystemTime::now(),
        }
    }

    /// The counters of one thread.
    #[must_use]
    pub fn metrics(&self, thread: usize) -> &Arc<ThreadMetrics> {
        &self.threads[thread].metrics
    }

    /// Open client connections of each thread.
    pub fn connections(&self) -> impl Iterator<Item = u64> {
        self.threads.iter().map(|thread| thread.metrics.connections())
    }

    /// The counters of all threads, added up.
    #[must_use]
    pub fn snapshot(&self) -> MetricsSnapshot {
        let mut snapshot = MetricsSnapshot::default();
        for thread in &self.threads {
            thread.metrics.add_to(&mut snapshot);
        }
        snapshot
    }

    /// Counts a connection that was refused at the connection limit.
    pub fn refuse_connection(&self) {
        self.connections_refused.fetch_add(1, Ordering::Relaxed);
    }

    /// Connections refused at the connection limit.
    #[must_use]
    pub fn connections_refused(&self) -> u64 {
        self.connections_refused.load(Ordering::Relaxed)
    }

    /// The budget of responses that wait for their clients.
    #[must_use]
    pub(crate) fn buffers(&self) -> &Arc<BufferBudget> {
        &self.buffers
    }

    /// The start, for times since then.
    #[must_use]
    pub fn started(&self) -> Instant {
        self.started
    }

    /// The start, by the calendar.
    #[must_use]
    pub fn started_at(&self) -> SystemTime {
        self.started_at
    }

    /// Records a sign of life of a thread.
    pub fn record_alive(&self, thread: usize) {
        self.threads[thread].last_seen_ms.store(self.uptime_ms(), Ordering::Relaxed);
    }

    /// The threads without a sign of life for 10 s.
    pub fn stuck(&self) -> impl Iterator<Item = usize> {
        let oldest = self.uptime_ms().saturating_sub(STUCK_AFTER.as_millis() as u64);
        let seen = self.threads.iter().map(|thread| thread.last_seen_ms.load(Ordering::Relaxed));
        seen.enumerate().filter(move |(_, seen_ms)| *seen_ms < oldest).map(|(index, _)| index)
    }

    /// Time since the last sign of life of the thread that has been silent for longest.
    #[must_use]
    pub fn silence(&self) -> Duration {
        let seen = self.threads.iter().map(|thread| thread.last_seen_ms.load(Ordering::Relaxed));
        let oldest_ms = seen.min().unwrap_or_else(|| self.uptime_ms());
        Duration::from_millis(self.uptime_ms().saturating_sub(oldest_ms))
    }

    fn uptime_ms(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
