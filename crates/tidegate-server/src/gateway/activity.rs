use crate::proxy::Held;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// What a client's connection is doing, as its watcher needs to know it. Written on every request, so all of
/// it is a plain store on the connection's own thread.
pub struct Activity {
    start: Instant,
    exchanges: AtomicU32,
    quiet_since_ms: AtomicU64,
    written: AtomicU64,
    write_blocked: AtomicBool,
    order: AtomicU8,
    waker: Mutex<Option<Waker>>,
    /// The answers under way on a connection whose streams can stop one by one.
    streams: Mutex<Vec<Weak<Held>>>,
    /// Where the connection goes on once its protocol was switched.
    tunnel: Mutex<Option<JoinHandle<()>>>,
    switched: AtomicBool,
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
            streams: Mutex::new(Vec::new()),
            tunnel: Mutex::new(None),
            switched: AtomicBool::new(false),
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
        if let Some(waker) = &*lock(&self.waker) {
            waker.wake_by_ref();
        }
    }

    /// Whom to wake when an order is given: the connection's task, which keeps its waker for life.
    pub fn wake_on_order(&self, waker: &Waker) {
        *lock(&self.waker) = Some(waker.clone());
    }

    /// Watches over an answer on a stream of its own.
    pub(crate) fn watch_stream(&self, held: &Arc<Held>) {
        let mut streams = lock(&self.streams);
        // Those that have ended go when there is no room, so a stream costs no search.
        if streams.len() == streams.capacity() {
            streams.retain(|stream| stream.strong_count() > 0);
        }
        streams.push(Arc::downgrade(held));
    }

    /// Takes away what streams hold that their client has let stand for this long.
    pub(super) fn release_stopped_streams(&self, limit: Duration) {
        lock(&self.streams).retain(|stream| match stream.upgrade() {
            Some(held) => {
                held.release_if_untouched_for(limit);
                true
            }
            None => false,
        });
    }

    /// Goes on in a tunnel: the connection's task ends when this does.
    pub(crate) fn switch_to(&self, tunnel: JoinHandle<()>) {
        self.switched.store(true, Ordering::Relaxed);
        *lock(&self.tunnel) = Some(tunnel);
    }

    /// Whether the connection speaks another protocol now.
    pub(super) fn has_switched(&self) -> bool {
        self.switched.load(Ordering::Relaxed)
    }

    /// The tunnel, once.
    pub(super) fn take_tunnel(&self) -> Option<JoinHandle<()>> {
        lock(&self.tunnel).take()
    }

    pub(super) fn note_written(&self, bytes: usize) {
        self.written.fetch_add(bytes as u64, Ordering::Relaxed);
        self.write_blocked.store(false, Ordering::Relaxed);
    }

    pub(super) fn note_write_blocked(&self) {
        self.write_blocked.store(true, Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
