use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use tidegate::routing::WorkerMonitor;
use tokio::task::yield_now;

/// Measures the turns of a thread: the time from one look at its sockets to the next. A response waits as long to
/// be noticed, and on a thread that is busy that is most of what its upstream seems to take.
#[derive(Debug)]
pub struct TurnMeter {
    started: Instant,
    /// Microseconds from the start to the next measurement.
    due_us: AtomicU64,
}

/// Time between two measurements: a limit's shortest round has five.
const PERIOD_US: u64 = 2_000;

// === impl TurnMeter ===

impl TurnMeter {
    pub fn new(started: Instant) -> Self {
        Self { started, due_us: AtomicU64::new(0) }
    }

    /// Measures a turn, if it is time to. Called with every request: a thread without any is not woken for it.
    pub fn pass(&self, now: Instant, monitor: &Arc<WorkerMonitor>) {
        let now_us = now.saturating_duration_since(self.started).as_micros() as u64;
        if now_us < self.due_us.load(Ordering::Relaxed) {
            return;
        }
        self.due_us.store(now_us + PERIOD_US, Ordering::Relaxed);
        let monitor = Arc::clone(monitor);
        tokio::spawn(async move {
            let began = Instant::now();
            // Wakes after the next look at the sockets, behind all that had been waiting for it.
            yield_now().await;
            monitor.record_own_delay(began.elapsed());
        });
    }
}
