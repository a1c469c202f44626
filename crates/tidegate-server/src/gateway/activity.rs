use super::buffer::{ResponseBuffer, Waiting};
use crate::http::client::{BodyRate, UploadWatch};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Waker;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// Activity of a client's connection, for the thread's reaper. Written on every request, so all of it is a plain
/// store on the connection's own thread.
pub struct Activity {
    start: Instant,
    exchanges: AtomicU32,
    quiet_since_ms: AtomicU64,
    written: AtomicU64,
    /// Bytes that were written before the newest exchange.
    written_before: AtomicU64,
    write_blocked: AtomicBool,
    takes_no_interim: AtomicBool,
    order: AtomicU8,
    waker: Mutex<Option<Waker>>,
    /// The responses under way on a connection whose streams can stop one by one.
    streams: Mutex<Vec<Weak<dyn ResponseStream>>>,
    /// The requests whose bodies are still coming.
    uploads: Mutex<Vec<Weak<UploadWatch>>>,
    /// Bytes of the responses of HTTP/1.1 that the client has not taken.
    buffer: Arc<ResponseBuffer>,
    /// The same of each response on a stream of its own.
    stream_buffers: Mutex<Vec<Weak<ResponseBuffer>>>,
    /// The task of the connection once its protocol was switched.
    tunnel: Mutex<Option<JoinHandle<()>>>,
    switched: AtomicBool,
}

/// An order to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Order {
    /// Go on.
    Go = 0,
    /// Finish the exchanges under way, then end.
    End = 1,
    /// End now.
    Cut = 2,
}

/// A response on a stream of its own, whose client may stop reading it without a trace on the connection.
pub trait ResponseStream: Send + Sync {
    /// Releases everything that the response holds, if its client has not asked for more for this long.
    fn release_if_untouched_for(&self, limit: Duration);
}

/// An exchange on a connection, from the request's head to the end of its response.
pub struct ActiveExchange {
    activity: Arc<Activity>,
    /// The time of the end, if it is known.
    ended_at: Option<Instant>,
}

// === impl Activity ===

impl Activity {
    /// A connection on which nothing has happened yet, with the buffer of its responses.
    #[must_use]
    pub fn new(buffer: ResponseBuffer) -> Self {
        Self {
            start: Instant::now(),
            exchanges: AtomicU32::new(0),
            quiet_since_ms: AtomicU64::new(0),
            written: AtomicU64::new(0),
            written_before: AtomicU64::new(0),
            write_blocked: AtomicBool::new(false),
            takes_no_interim: AtomicBool::new(false),
            order: AtomicU8::new(Order::Go as u8),
            waker: Mutex::new(None),
            streams: Mutex::new(Vec::new()),
            uploads: Mutex::new(Vec::new()),
            buffer: Arc::new(buffer),
            stream_buffers: Mutex::new(Vec::new()),
            tunnel: Mutex::new(None),
            switched: AtomicBool::new(false),
        }
    }

    /// Begins an exchange.
    #[must_use]
    pub fn enter(self: &Arc<Self>) -> ActiveExchange {
        self.exchanges.fetch_add(1, Ordering::Relaxed);
        self.written_before.store(self.written.load(Ordering::Relaxed), Ordering::Relaxed);
        ActiveExchange { activity: Arc::clone(self), ended_at: None }
    }

    /// The time without an exchange; `None` while one is under way.
    #[must_use]
    pub fn quiet_for(&self) -> Option<Duration> {
        if self.exchanges.load(Ordering::Relaxed) > 0 {
            return None;
        }
        let since = self.start + Duration::from_millis(self.quiet_since_ms.load(Ordering::Relaxed));
        Some(since.elapsed())
    }

    /// Returns true while a request is being answered.
    #[must_use]
    pub fn is_in_exchange(&self) -> bool {
        self.exchanges.load(Ordering::Relaxed) > 0 && !self.has_switched()
    }

    /// Returns true if an interim response may be written: the client understands it, and nothing of the response
    /// itself was written.
    #[must_use]
    pub fn may_be_probed(&self) -> bool {
        let (written, blocked) = self.written();
        let begun = written != self.written_before.load(Ordering::Relaxed) || blocked;
        !begun && !self.takes_no_interim.load(Ordering::Relaxed)
    }

    /// Notes that the client can't be sent interim responses of HTTP/1.1.
    pub(super) fn note_takes_no_interim(&self) {
        self.takes_no_interim.store(true, Ordering::Relaxed);
    }

    /// Bytes that the client's socket has taken, and whether it takes no more just now.
    #[must_use]
    pub fn written(&self) -> (u64, bool) {
        (self.written.load(Ordering::Relaxed), self.write_blocked.load(Ordering::Relaxed))
    }

    /// The order that the connection has to follow.
    #[must_use]
    pub fn order(&self) -> Order {
        match self.order.load(Ordering::Acquire) {
            0 => Order::Go,
            1 => Order::End,
            _ => Order::Cut,
        }
    }

    /// Gives the connection an order. An order is only ever made stricter.
    pub fn give(&self, order: Order) {
        self.order.fetch_max(order as u8, Ordering::AcqRel);
        if let Some(waker) = &*lock(&self.waker) {
            waker.wake_by_ref();
        }
    }

    /// Registers the connection's task, which keeps its waker for life, to be woken by orders.
    pub fn wake_on_order(&self, waker: &Waker) {
        *lock(&self.waker) = Some(waker.clone());
    }

    /// Registers a response on a stream of its own.
    pub(super) fn watch_stream(&self, response: Weak<dyn ResponseStream>) {
        let mut streams = lock(&self.streams);
        // Ended ones are removed when there is no room, so a stream costs no search.
        if streams.len() == streams.capacity() {
            streams.retain(|stream| stream.strong_count() > 0);
        }
        streams.push(response);
    }

    /// Releases the responses that their client has not read from for this long.
    pub(super) fn release_stopped_streams(&self, limit: Duration) {
        lock(&self.streams).retain(|stream| match stream.upgrade() {
            Some(response) => {
                response.release_if_untouched_for(limit);
                true
            }
            None => false,
        });
    }

    /// Registers a request whose body is still coming, to be held to the least rate.
    pub(super) fn watch_upload(&self, upload: &Arc<UploadWatch>) {
        let mut uploads = lock(&self.uploads);
        if uploads.len() == uploads.capacity() {
            uploads.retain(|upload| upload.strong_count() > 0);
        }
        uploads.push(Arc::downgrade(upload));
    }

    /// Ends the uploads that are too slow.
    pub(super) fn judge_uploads(&self, rate: BodyRate) {
        lock(&self.uploads).retain(|upload| match upload.upgrade() {
            Some(upload) => {
                upload.judge(rate);
                !upload.has_ended()
            }
            None => false,
        });
    }

    /// The buffer of the next response.
    pub(super) fn response_buffer(&self, on_stream: bool) -> Arc<ResponseBuffer> {
        if !on_stream {
            return Arc::clone(&self.buffer);
        }
        let buffer = Arc::new(self.buffer.of_stream());
        let mut buffers = lock(&self.stream_buffers);
        if buffers.len() == buffers.capacity() {
            buffers.retain(|buffer| buffer.strong_count() > 0);
        }
        buffers.push(Arc::downgrade(&buffer));
        buffer
    }

    /// The bytes that the client does not take; `None` if it takes all.
    #[must_use]
    pub fn waiting(&self) -> Option<Waiting> {
        let streams = lock(&self.stream_buffers);
        let streams = streams.iter().filter_map(|buffer| buffer.upgrade()?.waiting());
        self.buffer.waiting().into_iter().chain(streams).reduce(Waiting::and)
    }

    /// Switches to a tunnel: the connection's task ends when this does.
    pub(super) fn switch_to(&self, tunnel: JoinHandle<()>) {
        self.switched.store(true, Ordering::Relaxed);
        *lock(&self.tunnel) = Some(tunnel);
    }

    /// Returns true if the connection speaks another protocol now.
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
        self.buffer.note_sent(bytes);
    }

    /// Notes that everything was written that there was to write.
    pub(super) fn note_flushed(&self) {
        self.buffer.note_flushed();
    }

    pub(super) fn note_write_blocked(&self) {
        self.write_blocked.store(true, Ordering::Relaxed);
        self.buffer.note_blocked();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

// === impl ActiveExchange ===

impl ActiveExchange {
    /// Ends the exchange at `now`.
    pub fn end(mut self, now: Instant) {
        self.ended_at = Some(now);
    }
}

impl Drop for ActiveExchange {
    fn drop(&mut self) {
        let activity = &self.activity;
        let now = self.ended_at.unwrap_or_else(Instant::now);
        let quiet_since = now.saturating_duration_since(activity.start);
        let now_ms = u64::try_from(quiet_since.as_millis()).unwrap_or(u64::MAX);
        activity.quiet_since_ms.store(now_ms, Ordering::Relaxed);
        activity.exchanges.fetch_sub(1, Ordering::Relaxed);
    }
}
