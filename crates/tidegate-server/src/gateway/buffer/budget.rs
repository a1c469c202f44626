use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Notify;

/// Bytes of responses that wait for their clients, of all io threads together.
///
/// Each thread counts its own, so that threads do not wait for each other; only one that asks for the sum reads
/// all.
#[derive(Debug)]
pub struct BufferBudget {
    max: u64,
    threads: Box<[ThreadBuffers]>,
    closed: AtomicU64,
}

#[derive(Debug, Default)]
#[repr(align(128))]
struct ThreadBuffers {
    held: AtomicU64,
    exceeded: Notify,
}

// === impl BufferBudget ===

impl BufferBudget {
    /// A budget of this many bytes for this many threads.
    #[must_use]
    pub fn new(threads: usize, max: u64) -> Self {
        let threads = (0..threads).map(|_| ThreadBuffers::default()).collect();
        Self { max, threads, closed: AtomicU64::new(0) }
    }

    /// Bytes that wait now.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.threads.iter().map(|thread| thread.held.load(Ordering::Relaxed)).sum()
    }

    /// Bytes beyond the budget.
    #[must_use]
    pub fn excess(&self) -> u64 {
        self.held().saturating_sub(self.max)
    }

    /// Connections that were closed to keep the budget.
    #[must_use]
    pub fn closed(&self) -> u64 {
        self.closed.load(Ordering::Relaxed)
    }

    /// Counts connections that are closed to keep the budget.
    pub fn record_closed(&self, connections: u64) {
        self.closed.fetch_add(connections, Ordering::Relaxed);
    }

    /// Waits until a response of this thread exceeds the budget.
    ///
    /// # Cancel safety
    ///
    /// An excess that comes between two calls is told by the second.
    pub async fn exceeded(&self, thread: usize) {
        self.threads[thread].exceeded.notified().await;
    }

    /// Replaces a response's part of its thread's bytes by another.
    pub(super) fn recharge(&self, thread: usize, before: u64, after: u64) {
        let held = &self.threads[thread].held;
        if after < before {
            held.fetch_sub(before - after, Ordering::Relaxed);
        } else if after > before {
            held.fetch_add(after - before, Ordering::Relaxed);
            if self.excess() > 0 {
                self.threads[thread].exceeded.notify_one();
            }
        }
    }
}
