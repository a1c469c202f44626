use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// Change notification for all waiters. Each clone remembers the last change that it has seen.
#[derive(Debug)]
pub(super) struct Changes {
    count: watch::Sender<u64>,
    seen: AtomicU64,
}

// === impl Changes ===

impl Changes {
    pub(super) fn new() -> Self {
        Self { count: watch::Sender::new(0), seen: AtomicU64::new(0) }
    }

    pub(super) fn announce(&self) {
        self.count.send_modify(|count| *count += 1);
    }

    /// Waits until something has changed since the last call returned, and at most so long.
    pub(super) async fn wait(&self, at_most: Duration) {
        let mut count = self.count.subscribe();
        let seen = self.seen.load(Ordering::Relaxed);
        let changed = count.wait_for(|count| *count != seen);
        if let Ok(Ok(count)) = tokio::time::timeout(at_most, changed).await {
            // Of several calls at once all return for the same change, and none may undo what a later one saw.
            self.seen.fetch_max(*count, Ordering::Relaxed);
        }
    }
}

impl Clone for Changes {
    fn clone(&self) -> Self {
        let seen = AtomicU64::new(self.seen.load(Ordering::Relaxed));
        Self { count: self.count.clone(), seen }
    }
}
