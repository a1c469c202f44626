use super::exchange::Exchange;
use crate::gateway::activity::ResponseStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The guard of everything that a response holds until it has been passed on. The reaper can release it: a client
/// of HTTP/2 that opens no window stops its stream without a trace on the connection, and must not hold a
/// permit for that.
pub struct ResponseGuard {
    exchange: Mutex<Option<Exchange>>,
    start: Instant,
    touched_ms: AtomicU64,
}

// === impl Held ===

impl ResponseGuard {
    pub fn new(exchange: Exchange) -> Self {
        Self {
            start: exchange.started(),
            exchange: Mutex::new(Some(exchange)),
            touched_ms: AtomicU64::new(0),
        }
    }

    /// Notes that the client's side asked for more. False when everything was taken away.
    pub fn touch(&self) -> bool {
        let elapsed_ms = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.touched_ms.store(elapsed_ms, Ordering::Relaxed);
        self.lock().is_some()
    }

    /// Records the first piece of the response.
    pub fn prefilled(&self) {
        if let Some(exchange) = &mut *self.lock() {
            exchange.prefilled();
        }
    }

    /// Takes what is held, for its one end.
    pub fn take(&self) -> Option<Exchange> {
        self.lock().take()
    }

    /// When the request's upload last moved, while it has not ended.
    pub fn upload_progress(&self) -> Option<Instant> {
        self.lock().as_ref().and_then(Exchange::upload_progress)
    }

    fn lock(&self) -> MutexGuard<'_, Option<Exchange>> {
        self.exchange.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ResponseStream for ResponseGuard {
    fn release_if_untouched_for(&self, limit: Duration) {
        let touched = self.start + Duration::from_millis(self.touched_ms.load(Ordering::Relaxed));
        if touched.elapsed() >= limit {
            drop(self.take());
        }
    }
}
