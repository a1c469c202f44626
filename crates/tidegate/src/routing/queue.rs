use super::pass::Pass;
use super::sync::{self, AtomicU8, AtomicU64, Mutex, MutexGuard, Ordering, fence};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate_core::admission::MessagePriority;
use tidegate_core::queue::{Arrival, Next, NotQueued, Offer, PoolQueue, PoolQueueConfig, QueueKey};

/// The requests that wait for the upstreams of one model, shared between threads.
///
/// Implementation: threads that find a slot free do not lock the queue; they only read which bands wait. The order
/// of two steps makes that exact. A request that waits first publishes its band and then looks for a slot once
/// more; one that found a slot looks at the bands once more, and gives the slot back if a request that comes first
/// waits. A thread that frees a slot looks at the bands afterwards, and serves the queue. With a fence between the
/// two steps of each, no slot stays free beside a request that waits for it.
#[derive(Debug)]
pub(super) struct ModelQueue {
    /// One bit for each band in which requests wait; the lowest bit is the most urgent.
    bands: AtomicU8,
    queue: Mutex<PoolQueue<Box<dyn Waiter>>>,
    sent: [AtomicU64; 3],
    ended: AtomicU64,
    service_us: AtomicU64,
    began: AtomicU64,
    first_byte_us: AtomicU64,
}

/// A request that waits.
pub(super) trait Waiter: fmt::Debug + Send {
    /// Takes a slot if one is free for this request, and returns `true` with it if that was the last for any.
    /// Called with the queue locked.
    fn offer(&self, pass: &mut Pass, now: Duration) -> Offer<bool>;

    /// Ends the wait. Called without the lock: a slot that nobody wants any more is released, which serves the
    /// queue.
    fn end(self: Box<Self>, end: WaitEnd);
}

/// The end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WaitEnd {
    /// The request took a slot when it was offered one.
    Served,
    /// Another request took its position.
    Displaced,
    /// Its deadline has passed.
    Expired,
    /// The model is gone: the request asks again.
    Moved,
}

/// The position of a request that waits. Dropping it leaves the queue.
#[derive(Debug)]
pub(super) struct Position {
    queue: Arc<ModelQueue>,
    key: Option<QueueKey>,
    /// The time of arrival, by the caller's clock and by the system's.
    since: (Duration, Instant),
}

type Ended = Vec<(Box<dyn Waiter>, WaitEnd)>;

// === impl ModelQueue ===

impl ModelQueue {
    pub fn new(config: PoolQueueConfig) -> Self {
        Self {
            bands: AtomicU8::new(0),
            queue: Mutex::new(PoolQueue::new(config)),
            sent: Default::default(),
            ended: AtomicU64::new(0),
            service_us: AtomicU64::new(0),
            began: AtomicU64::new(0),
            first_byte_us: AtomicU64::new(0),
        }
    }

    /// Returns `true` if a request waits that comes before one of this priority that arrives now.
    pub fn comes_before(&self, priority: MessagePriority) -> bool {
        let bands = (2_u8 << band(priority)) - 1;
        self.bands.load(Ordering::SeqCst) & bands != 0
    }

    /// Returns the most urgent band that waits, if any.
    pub fn most_urgent(&self) -> Option<u32> {
        let bands = self.bands.load(Ordering::SeqCst);
        (bands != 0).then(|| bands.trailing_zeros())
    }

    /// Counts a request that is sent.
    pub fn count_sent(&self, priority: MessagePriority) {
        self.sent[band(priority)].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a request that was in flight for this time.
    pub fn count_ended(&self, service: Duration) {
        self.service_us.fetch_add(micros(service), Ordering::Relaxed);
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a response whose body began after this time.
    pub fn count_began(&self, first_byte: Duration) {
        self.first_byte_us.fetch_add(micros(first_byte), Ordering::Relaxed);
        self.began.fetch_add(1, Ordering::Relaxed);
    }

    /// Queues a request, and serves the queue if it has room now: a slot may have become free since the request
    /// found none.
    ///
    /// # Errors
    ///
    /// When it may not wait.
    pub fn arrive(
        self: &Arc<Self>,
        arrival: Arrival<Box<dyn Waiter>>,
        in_flight: u64,
        has_room: impl FnOnce() -> bool,
        now: Duration,
    ) -> Result<Position, NotQueued<()>> {
        let mut queue = self.lock();
        let sent = [0, 1, 2].map(|band: usize| self.sent[band].load(Ordering::Relaxed));
        let ended = self.ended.load(Ordering::Relaxed);
        queue.observe(now, ended, self.service_us.load(Ordering::Relaxed), sent);
        let began = self.began.load(Ordering::Relaxed);
        queue.observe_first_bytes(began, self.first_byte_us.load(Ordering::Relaxed));
        let pushed = queue.arrive(arrival, in_flight, now).map_err(|refused| {
            let NotQueued { reason, position, wait, .. } = refused;
            NotQueued { item: (), reason, position, wait }
        })?;
        let displaced = pushed.displaced.into_iter();
        let ended: Ended = displaced.map(|waiter| (waiter, WaitEnd::Displaced)).collect();
        self.publish(&queue);
        match has_room() {
            true => self.serve_locked(queue, ended, now),
            false => self.unlock(queue, ended),
        }
        let since = (now, sync::now());
        Ok(Position { queue: Arc::clone(self), key: Some(pushed.key), since })
    }

    /// Gives free slots to the requests that wait, in their order.
    pub fn serve(&self, now: Duration) {
        // Mostly one slot is free, for one request.
        self.serve_locked(self.lock(), Vec::with_capacity(1), now);
    }

    /// Tells all requests to ask again, because the model is gone.
    pub fn move_all(&self) {
        let mut queue = self.lock();
        let mut ended = Vec::new();
        while let Some(Next::Served { item, .. } | Next::Expired { item }) =
            queue.next(Duration::ZERO, |_| Offer::Taken(()))
        {
            ended.push((item, WaitEnd::Moved));
        }
        self.publish(&queue);
        self.unlock(queue, ended);
    }

    pub fn read<R>(&self, read: impl FnOnce(&PoolQueue<Box<dyn Waiter>>) -> R) -> R {
        read(&self.lock())
    }

    fn serve_locked(
        &self,
        mut queue: MutexGuard<'_, PoolQueue<Box<dyn Waiter>>>,
        mut ended: Ended,
        now: Duration,
    ) {
        let mut is_full = false;
        while !is_full {
            let mut pass = Pass::default();
            let Some(next) = queue.next(now, |waiter| waiter.offer(&mut pass, now)) else { break };
            ended.push(match next {
                Next::Served { item, slot, .. } => {
                    is_full = slot;
                    (item, WaitEnd::Served)
                }
                Next::Expired { item } => (item, WaitEnd::Expired),
            });
        }
        self.publish(&queue);
        self.unlock(queue, ended);
    }

    fn unlock(&self, queue: MutexGuard<'_, PoolQueue<Box<dyn Waiter>>>, ended: Ended) {
        drop(queue);
        for (waiter, end) in ended {
            waiter.end(end);
        }
    }

    fn publish(&self, queue: &PoolQueue<Box<dyn Waiter>>) {
        use MessagePriority::{High, Low, Normal};
        let bit = |priority| u8::from(queue.waiting(priority) > 0) << band(priority);
        self.bands.store(bit(High) | bit(Normal) | bit(Low), Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    fn lock(&self) -> MutexGuard<'_, PoolQueue<Box<dyn Waiter>>> {
        sync::lock(&self.queue)
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// The band of a priority: 0 for High.
fn band(priority: MessagePriority) -> usize {
    usize::from(priority as u8).saturating_sub(1)
}

// === impl Position ===

impl Position {
    /// Forgets the position of a request whose wait has ended.
    pub fn forget(mut self) {
        self.key = None;
    }

    /// Leaves the queue because the deadline has passed. Returns `false` if the wait has ended already.
    pub fn expire(mut self) -> bool {
        self.remove(PoolQueue::expire)
    }

    fn remove(
        &mut self,
        remove: impl FnOnce(&mut PoolQueue<Box<dyn Waiter>>, QueueKey) -> Option<Box<dyn Waiter>>,
    ) -> bool {
        let Some(key) = self.key.take() else { return false };
        let mut queue = self.queue.lock();
        let waiter = remove(&mut queue, key);
        // A free slot that was too small for the request that left may be enough for the next one.
        let now = self.since.0 + sync::now().saturating_duration_since(self.since.1);
        self.queue.serve_locked(queue, Vec::new(), now);
        waiter.is_some()
    }
}

impl Drop for Position {
    fn drop(&mut self) {
        self.remove(PoolQueue::leave);
    }
}
