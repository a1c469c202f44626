use super::sync::{AtomicU64, Ordering};
use std::time::Duration;

/// The time that this process takes to notice a response that has arrived, over the last measurements of all its
/// threads.
#[derive(Debug, Default)]
pub(super) struct OwnDelay {
    mean_ns: AtomicU64,
}

/// Measurements that are remembered: enough to smooth one late turn of a thread, and forgotten within
/// milliseconds of traffic.
const REMEMBERED: u64 = 4;

// === impl OwnDelay ===

impl OwnDelay {
    pub(super) fn mean(&self) -> Duration {
        Duration::from_nanos(self.mean_ns.load(Ordering::Relaxed))
    }

    /// Threads that record at once may lose one of their measurements.
    pub(super) fn record(&self, delay: Duration) {
        let delay_ns = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX) / REMEMBERED;
        let mean_ns = self.mean_ns.load(Ordering::Relaxed);
        let kept_ns = mean_ns - mean_ns / REMEMBERED;
        self.mean_ns.store(kept_ns.saturating_add(delay_ns), Ordering::Relaxed);
    }
}
