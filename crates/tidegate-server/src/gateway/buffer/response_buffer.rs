use super::BufferBudget;
use bytes::{Buf, Bytes};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

/// Unsent bytes from which on a response takes no more from its upstream. Small pieces go out together up to here,
/// and a large one alone.
const UNSENT_MAX: usize = 8 * 1024;

/// Unsent bytes of a response at most. With what frames them they fit into 32 KiB: the HTTP server doubles its
/// buffer when they do not, and keeps it for as long as the connection lives.
const PENDING_MAX: usize = 31 * 1024;

/// Bytes of a response that its client has not taken. Over HTTP/1.1 a connection has one for all its responses,
/// which come one after the other; over HTTP/2 each response has its own.
///
/// A client that reads costs two plain stores per piece over HTTP/1.1: only a response that waits for its client
/// is charged to the budget.
#[derive(Debug)]
pub struct ResponseBuffer {
    budget: Arc<BufferBudget>,
    thread: usize,
    unsent: AtomicUsize,
    /// Bytes that the connection to the upstream may hold of the response besides.
    upstream: AtomicUsize,
    /// True if changes are settled at once: the response waits, or nobody tells when it does.
    waits: AtomicBool,
    /// True if each piece tells when it was sent.
    by_piece: bool,
    charge: Mutex<Charge>,
}

#[derive(Debug, Default)]
struct Charge {
    bytes: u64,
    /// The last time that the client took something, or that it began to wait.
    since: Option<Instant>,
    waker: Option<Waker>,
}

/// The bytes that a client does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// The last time that the client took something of the response that waits longest.
    pub since: Instant,
    /// Bytes of all its responses.
    pub bytes: u64,
}

/// A piece of a response, which is counted until it was sent.
#[derive(Debug)]
pub struct Piece {
    rest: Bytes,
    length: usize,
    buffer: Option<Arc<ResponseBuffer>>,
}

// === impl ResponseBuffer ===

impl ResponseBuffer {
    /// The buffer of an HTTP/1.1 connection, whose socket tells what was sent.
    #[must_use]
    pub fn of_connection(budget: Arc<BufferBudget>, thread: usize) -> Self {
        Self::new(budget, thread, false)
    }

    /// The buffer of a response on a stream of its own, on the same thread.
    #[must_use]
    pub fn of_stream(&self) -> Self {
        Self::new(Arc::clone(&self.budget), self.thread, true)
    }

    fn new(budget: Arc<BufferBudget>, thread: usize, by_piece: bool) -> Self {
        Self {
            budget,
            thread,
            unsent: AtomicUsize::new(0),
            upstream: AtomicUsize::new(0),
            waits: AtomicBool::new(by_piece),
            by_piece,
            charge: Mutex::default(),
        }
    }

    /// Begins a response of which the upstream's connection may hold this much.
    pub fn begin(&self, upstream: usize) {
        self.upstream.store(upstream, Ordering::Relaxed);
    }

    /// Ends the response: the upstream's connection holds no more of it.
    pub fn end(&self) {
        self.upstream.store(0, Ordering::Relaxed);
        self.settle_if_waiting(false);
    }

    /// Ready with the length of the longest piece that the response may take. Once it had to wait, and beyond
    /// the budget, that is when all before it was sent. What `is_here` already, read together with the piece
    /// before it, goes with it: two buffers would hold more.
    pub fn poll_room(&self, cx: &mut Context<'_>, is_here: bool) -> Poll<usize> {
        let unsent = self.unsent.load(Ordering::Relaxed);
        let has_room = match unsent {
            0 => true,
            _ if is_here && !self.by_piece => true,
            unsent => unsent < self.resume_below() && self.budget.excess() == 0,
        };
        if has_room {
            return Poll::Ready(PENDING_MAX.saturating_sub(unsent));
        }
        self.lock().waker = Some(cx.waker().clone());
        self.waits.store(true, Ordering::Relaxed);
        Poll::Pending
    }

    /// Counts a piece that is handed to the client's connection.
    pub fn take(self: &Arc<Self>, bytes: Bytes) -> Piece {
        let length = bytes.len();
        self.unsent.fetch_add(length, Ordering::Relaxed);
        self.settle_if_waiting(false);
        Piece { rest: bytes, length, buffer: self.by_piece.then(|| Arc::clone(self)) }
    }

    /// Records bytes that the client's socket took, heads and frames among them.
    pub fn note_sent(&self, bytes: usize) {
        let unsent = self.unsent.load(Ordering::Relaxed);
        if unsent > 0 {
            self.unsent.store(unsent.saturating_sub(bytes), Ordering::Relaxed);
            self.settle_if_waiting(true);
        }
    }

    /// Records that the client's connection has nothing left to send.
    pub fn note_flushed(&self) {
        self.note_sent(usize::MAX);
    }

    /// Records that the client's socket takes no more now.
    pub fn note_blocked(&self) {
        if !self.by_piece && !self.waits.swap(true, Ordering::Relaxed) {
            self.settle(false);
        }
    }

    /// The bytes that the client does not take; `None` if it takes all.
    #[must_use]
    pub fn waiting(&self) -> Option<Waiting> {
        let charge = self.lock();
        let since = charge.since.filter(|_| charge.bytes > 0)?;
        Some(Waiting { since, bytes: charge.bytes })
    }

    /// Unsent bytes below which the response takes more. What a blocked socket has not taken is all that waits for
    /// it.
    fn resume_below(&self) -> usize {
        if self.waits.load(Ordering::Relaxed) && !self.by_piece { 1 } else { UNSENT_MAX }
    }

    fn settle_if_waiting(&self, progress: bool) {
        if self.waits.load(Ordering::Relaxed) {
            self.settle(progress);
        }
    }

    fn settle(&self, progress: bool) {
        let mut charge = self.lock();
        let unsent = self.unsent.load(Ordering::Relaxed);
        let bytes = match unsent {
            0 => 0,
            unsent => (unsent + self.upstream.load(Ordering::Relaxed)) as u64,
        };
        self.budget.recharge(self.thread, charge.bytes, bytes);
        charge.bytes = bytes;
        if unsent == 0 {
            charge.since = None;
            self.waits.store(self.by_piece, Ordering::Relaxed);
        } else if progress || charge.since.is_none() {
            charge.since = Some(Instant::now());
        }
        if progress
            && (unsent == 0 || unsent < self.resume_below())
            && let Some(waker) = charge.waker.take()
        {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Charge> {
        self.charge.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ResponseBuffer {
    fn drop(&mut self) {
        let bytes = self.lock().bytes;
        self.budget.recharge(self.thread, bytes, 0);
    }
}

// === impl Waiting ===

impl Waiting {
    /// Both together: the longer wait, and the bytes of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self { since: self.since.min(other.since), bytes: self.bytes + other.bytes }
    }
}

// === impl Piece ===

impl From<Bytes> for Piece {
    fn from(bytes: Bytes) -> Self {
        Self { length: bytes.len(), rest: bytes, buffer: None }
    }
}

impl Buf for Piece {
    fn remaining(&self) -> usize {
        self.rest.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.rest.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.rest.advance(count);
    }

    fn copy_to_bytes(&mut self, length: usize) -> Bytes {
        self.rest.copy_to_bytes(length)
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        if let Some(buffer) = &self.buffer {
            buffer.note_sent(self.length);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;
    use std::task::Wake;

    #[derive(Default)]
    struct Wakes(AtomicU32);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn piece(length: usize) -> Bytes {
        Bytes::from(vec![0; length])
    }

    #[test]
    fn a_connection_is_charged_from_when_it_blocks_until_all_is_sent() {
        let budget = Arc::new(BufferBudget::new(2, 1 << 20));
        let buffer = Arc::new(ResponseBuffer::of_connection(Arc::clone(&budget), 1));
        buffer.begin(1_000);
        drop(buffer.take(piece(100)));
        assert_eq!((budget.held(), buffer.waiting()), (0, None), "it may still be taken at once");
        buffer.note_blocked();
        assert_eq!(budget.held(), 1_100);
        buffer.note_sent(40);
        assert_eq!(budget.held(), 1_060);
        buffer.end();
        assert_eq!(buffer.waiting().map(|waiting| waiting.bytes), Some(60));
        buffer.note_flushed();
        assert_eq!((budget.held(), buffer.waiting()), (0, None));
    }

    #[test]
    fn a_stream_is_charged_by_its_pieces_and_a_connection_that_ends_is_not() {
        let budget = Arc::new(BufferBudget::new(1, 1 << 20));
        let connection = Arc::new(ResponseBuffer::of_connection(Arc::clone(&budget), 0));
        let stream = Arc::new(connection.of_stream());
        let (one, two) = (stream.take(piece(10)), stream.take(piece(20)));
        assert_eq!(budget.held(), 30);
        drop(one);
        assert_eq!(budget.held(), 20);
        drop((two, stream));
        drop(connection.take(piece(7)));
        connection.note_blocked();
        assert_eq!(budget.held(), 7);
        drop(connection);
        assert_eq!(budget.held(), 0);
    }

    #[test]
    fn a_response_waits_at_its_bound_and_beyond_the_budget_for_all_before_it() {
        let budget = Arc::new(BufferBudget::new(1, 1_000));
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let mut cx = Context::from_waker(&waker);
        let buffer = Arc::new(ResponseBuffer::of_connection(Arc::clone(&budget), 0));
        drop(buffer.take(piece(UNSENT_MAX)));
        assert!(buffer.poll_room(&mut cx, false).is_pending(), "at its bound");
        buffer.note_sent(UNSENT_MAX - 900);
        assert_eq!((wakes.0.load(Ordering::Relaxed), budget.held()), (0, 900));
        buffer.note_sent(900);
        assert_eq!((wakes.0.load(Ordering::Relaxed), budget.held()), (1, 0));
        let stream = Arc::new(buffer.of_stream());
        let (one, two) = (stream.take(piece(600)), stream.take(piece(500)));
        assert_eq!(budget.excess(), 100);
        assert!(stream.poll_room(&mut cx, false).is_pending(), "beyond the budget");
        drop(one);
        assert!(
            wakes.0.load(Ordering::Relaxed) == 2 && stream.poll_room(&mut cx, false).is_ready()
        );
        drop(two);
    }
}
