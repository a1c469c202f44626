use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

/// What a client's connection is doing, as its watcher needs to know it. Written on every request, so all of
/// it is a plain store on the connection's own thread.
#[derive(Debug)]
pub struct Activity {
    start: Instant,
    exchanges: AtomicU32,
    quiet_since_ms: AtomicU64,
    written: AtomicU64,
    write_blocked: AtomicBool,
    order: AtomicU8,
    waker: Mutex<Option<Waker>>,
}

/// What a connection is told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Order {
    /// Go on.
    Go = 0,
    /// Finish what is under way, then end.
    End = 1,
    /// End now.
    Cut = 2,
}

/// One exchange on a connection, from the request's head to the end of its answer.
#[derive(Debug)]
pub struct Busy {
    activity: Arc<Activity>,
}

// === impl Activity ===

impl Activity {
    /// A connection on which nothing has happened yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            start: Instant::now(),
            exchanges: AtomicU32::new(0),
            quiet_since_ms: AtomicU64::new(0),
            written: AtomicU64::new(0),
            write_blocked: AtomicBool::new(false),
            order: AtomicU8::new(Order::Go as u8),
            waker: Mutex::new(None),
        }
    }

    /// Begins an exchange.
    #[must_use]
    pub fn enter(self: &Arc<Self>) -> Busy {
        self.exchanges.fetch_add(1, Ordering::Relaxed);
        Busy { activity: Arc::clone(self) }
    }

    /// For how long no exchange has been under way; `None` while one is.
    #[must_use]
    pub fn quiet_for(&self) -> Option<Duration> {
        if self.exchanges.load(Ordering::Relaxed) > 0 {
            return None;
        }
        let since = self.start + Duration::from_millis(self.quiet_since_ms.load(Ordering::Relaxed));
        Some(since.elapsed())
    }

    /// Bytes that the client's socket has taken, and whether it takes no more just now.
    #[must_use]
    pub fn written(&self) -> (u64, bool) {
        (self.written.load(Ordering::Relaxed), self.write_blocked.load(Ordering::Relaxed))
    }

    /// What the connection is told to do.
    #[must_use]
    pub fn order(&self) -> Order {
        match self.order.load(Ordering::Acquire) {
            0 => Order::Go,
            1 => Order::End,
            _ => Order::Cut,
        }
    }

    /// Tells the connection what to do. An order is only ever made stricter.
    pub fn give(&self, order: Order) {
        self.order.fetch_max(order as u8, Ordering::AcqRel);
        if let Some(waker) = &*self.waker.lock().unwrap_or_else(PoisonError::into_inner) {
            waker.wake_by_ref();
        }
    }

    /// Whom to wake when an order is given: the connection's task, which keeps its waker for life.
    pub fn wake_on_order(&self, waker: &Waker) {
        *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(waker.clone());
    }

    pub(super) fn note_written(&self, bytes: usize) {
        self.written.fetch_add(bytes as u64, Ordering::Relaxed);
        self.write_blocked.store(false, Ordering::Relaxed);
    }

    pub(super) fn note_write_blocked(&self) {
        self.write_blocked.store(true, Ordering::Relaxed);
    }
}

impl Default for Activity {
    fn default() -> Self {
        Self::new()
    }
}

// === impl Busy ===

impl Drop for Busy {
    fn drop(&mut self) {
        let activity = &self.activity;
        let now_ms = u64::try_from(activity.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        activity.quiet_since_ms.store(now_ms, Ordering::Relaxed);
        activity.exchanges.fetch_sub(1, Ordering::Relaxed);
    }
}
