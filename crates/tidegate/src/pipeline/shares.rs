use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

/// Bytes that a heavy sender may have in the pipeline beside a light one: two reads, one of which is stored while
/// the other is parsed. A longer frame passes by itself, so a batch of a light sender waits for about one batch of
/// each heavy one.
const HEAVY_BYTES: u64 = 32 * 1024;

/// A sender that had more than this in the pipeline is not light: half of what a heavy one may have, so that
/// senders of about the same load do not limit each other.
const LIGHT_BYTES: u64 = HEAVY_BYTES / 2;

/// Time for which a sender is remembered as active, and as not light: as long as the usual interval of agents that
/// send metrics.
const MEMORY: Duration = Duration::from_secs(10);

/// Interval at which light senders are looked for. Their number may be that of all connections.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Longest time until a heavy sender notices that there is no light one any more.
const RECHECK: Duration = Duration::from_millis(100);

/// Time between two series that a sender begins beside a light one. A series took the pipeline about 13 µs on a
/// busy machine, and a batch is stored as a whole: in about a hundredth of the time, either fewer than one in a
/// hundred acks of the light sender meets such a batch, or the batch takes no longer than such an ack.
const SERIES_EVERY: Duration = Duration::from_millis(1);

/// Longest wait for series that were begun. Shorter than a sender waits for an answer.
const SERIES_WAIT_MAX: Duration = Duration::from_secs(10);

/// Occupancy of the pipeline by sender. All senders share its queues, first come, first served: while a light
/// sender is active, those that send much wait at the entrance for their own batches, not the light one behind
/// them.
#[derive(Debug)]
pub(crate) struct Shares {
    start: Instant,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    /// One for each open connection without a client, and one for each connected client.
    all: Vec<Weak<Share>>,
    clients: HashMap<Arc<str>, Weak<Share>>,
    looked: Option<Instant>,
    /// Light senders: two are enough to tell whether there is another one.
    light: Vec<Weak<Share>>,
}

/// Bytes of one sender in the pipeline: those of a connection, or of all connections of a client.
#[derive(Debug, Default)]
pub(crate) struct Share {
    bytes: AtomicU64,
    /// Milliseconds from the start until it last sent, and until it last was not light; 0 for never.
    sent_ms: AtomicU64,
    busy_ms: AtomicU64,
    freed: Notify,
    /// Time from which on it may send again, after it began series.
    series_due: Mutex<Option<Instant>>,
}

/// A part of a share. Dropped, it is free again.
#[derive(Debug)]
pub(crate) struct Occupied {
    share: Arc<Share>,
    bytes: u64,
}

// === impl Shares ===

impl Shares {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), known: Mutex::default() }
    }

    /// The share of a new connection.
    pub(crate) fn add(&self) -> Arc<Share> {
        let share = Arc::new(Share::default());
        self.lock().all.push(Arc::downgrade(&share));
        share
    }

    /// The share of all connections of a client.
    pub(crate) fn of_client(&self, name: &Arc<str>) -> Arc<Share> {
        let mut known = self.lock();
        if let Some(share) = known.clients.get(name).and_then(Weak::upgrade) {
            return share;
        }
        let share = Arc::new(Share::default());
        known.all.push(Arc::downgrade(&share));
        known.clients.insert(Arc::clone(name), Arc::downgrade(&share));
        share
    }

    /// Waits for the turn of a sender that has so many more bytes, and takes them.
    ///
    /// # Cancel safety
    ///
    /// Dropped before it resolves, nothing was taken.
    pub(crate) async fn enter(&self, share: &Arc<Share>, bytes: usize) -> Occupied {
        loop {
            if let Some(left) = share.series_wait()
                && self.is_beside_light(share)
            {
                sleep(left.min(RECHECK)).await;
                continue;
            }
            let freed = share.freed.notified();
            let before = share.bytes.load(Ordering::Acquire);
            if before == 0 || before + bytes as u64 <= HEAVY_BYTES {
                break;
            }
            share.busy_ms.store(self.now_ms(), Ordering::Relaxed);
            if !self.is_beside_light(share) {
                break;
            }
            // An error means that none of it was freed: there may be no light sender any more.
            let _ = timeout(RECHECK, freed).await;
        }
        let now_ms = self.now_ms();
        share.sent_ms.store(now_ms, Ordering::Relaxed);
        let occupied = share.occupy(bytes);
        if share.bytes.load(Ordering::Acquire) > LIGHT_BYTES {
            share.busy_ms.store(now_ms, Ordering::Relaxed);
        }
        occupied
    }

    /// Counts series that a sender began. Beside a light sender it waits for them before it sends more.
    pub(crate) fn began(&self, share: &Share, series: u64) {
        if series == 0 || !self.is_beside_light(share) {
            return;
        }
        let now = Instant::now();
        let series = u32::try_from(series).unwrap_or(u32::MAX);
        let mut due = share.series_due.lock().unwrap_or_else(PoisonError::into_inner);
        let from = due.filter(|due| *due > now).unwrap_or(now);
        *due = Some((from + SERIES_EVERY * series).min(now + SERIES_WAIT_MAX));
    }

    /// True if another sender is light.
    fn is_beside_light(&self, share: &Share) -> bool {
        let mut known = self.lock();
        if known.looked.is_none_or(|looked| looked.elapsed() >= LOOK_EVERY) {
            known.look(self.now_ms());
        }
        known.light.iter().any(|light| !std::ptr::eq(light.as_ptr(), share))
    }

    /// Never 0, which means never.
    fn now_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX).saturating_add(1)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Known ===

impl Known {
    /// Looks for light senders, and forgets those that are gone.
    fn look(&mut self, now_ms: u64) {
        self.looked = Some(Instant::now());
        self.all.retain(|share| share.strong_count() > 0);
        self.clients.retain(|_, share| share.strong_count() > 0);
        let is_light = |share: &&Weak<Share>| share.upgrade().is_some_and(|it| it.is_light(now_ms));
        self.light = self.all.iter().filter(|share| is_light(share)).take(2).cloned().collect();
    }
}

// === impl Share ===

impl Share {
    /// Takes so many bytes, without waiting.
    pub(crate) fn occupy(self: &Arc<Self>, bytes: usize) -> Occupied {
        let bytes = bytes as u64;
        self.bytes.fetch_add(bytes, Ordering::AcqRel);
        Occupied { share: Arc::clone(self), bytes }
    }

    /// Remaining time for which it has to wait because of series that it began.
    fn series_wait(&self) -> Option<Duration> {
        let due = (*self.series_due.lock().unwrap_or_else(PoisonError::into_inner))?;
        let left = due.saturating_duration_since(Instant::now());
        (!left.is_zero()).then_some(left)
    }

    fn is_light(&self, now_ms: u64) -> bool {
        let is_recent = |at: &AtomicU64| {
            let at_ms = at.load(Ordering::Relaxed);
            at_ms > 0 && Duration::from_millis(now_ms.saturating_sub(at_ms)) < MEMORY
        };
        is_recent(&self.sent_ms) && !is_recent(&self.busy_ms)
    }
}

// === impl Occupied ===

impl Drop for Occupied {
    fn drop(&mut self) {
        self.share.bytes.fetch_sub(self.bytes, Ordering::AcqRel);
        self.share.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;
    use tokio::time::advance;

    const CHUNK: usize = 16 * 1024;

    /// Enters with so many reads of 16 KiB, or as many of them as may enter without waiting.
    async fn fill(shares: &Shares, share: &Arc<Share>, count: usize) -> Vec<Occupied> {
        let mut entered = Vec::new();
        while entered.len() < count {
            match now(shares, share).await {
                Some(occupied) => entered.push(occupied),
                None => break,
            }
        }
        entered
    }

    /// One read, if it enters without waiting.
    async fn now(shares: &Shares, share: &Arc<Share>) -> Option<Occupied> {
        let mut entering = pin!(shares.enter(share, CHUNK));
        poll_fn(|cx| match entering.as_mut().poll(cx) {
            Poll::Ready(occupied) => Poll::Ready(Some(occupied)),
            Poll::Pending => Poll::Ready(None),
        })
        .await
    }

    #[tokio::test(start_paused = true)]
    async fn senders_of_much_enter_without_end_while_nobody_sends_little() {
        let shares = Shares::new();
        let heavy = [shares.add(), shares.add()];
        let mut entered = Vec::new();
        for share in heavy.iter().cycle().take(20) {
            entered.extend(fill(&shares, share, 5).await);
        }
        assert_eq!(entered.len(), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn beside_a_light_sender_a_heavy_one_enters_as_its_own_batches_leave() {
        let shares = Shares::new();
        let (light, heavy) = (shares.add(), shares.add());
        drop(now(&shares, &light).await.unwrap());
        let mut entered = fill(&shares, &heavy, 100).await;
        assert_eq!(entered.len() as u64 * CHUNK as u64, HEAVY_BYTES);
        drop(now(&shares, &light).await.expect("a light sender never waits"));
        let mut entering = pin!(shares.enter(&heavy, CHUNK));
        assert!(timeout(Duration::from_secs(5), &mut entering).await.is_err());
        entered.pop();
        let waited = Instant::now();
        entered.push(entering.await);
        assert_eq!(waited.elapsed(), Duration::ZERO, "it is woken by what leaves");
    }

    #[tokio::test(start_paused = true)]
    async fn a_heavy_sender_is_free_again_once_the_light_one_is_silent_or_gone() {
        let shares = Shares::new();
        let (light, heavy) = (shares.add(), shares.add());
        drop(now(&shares, &light).await.unwrap());
        let mut entered = fill(&shares, &heavy, 100).await;
        let started = Instant::now();
        entered.push(shares.enter(&heavy, CHUNK).await);
        assert!((MEMORY..MEMORY + 2 * RECHECK).contains(&started.elapsed()));
        drop(now(&shares, &light).await.unwrap());
        advance(LOOK_EVERY).await;
        assert!(now(&shares, &heavy).await.is_none());
        drop(light);
        advance(LOOK_EVERY).await;
        assert!(now(&shares, &heavy).await.is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_frame_longer_than_the_bound_enters_by_itself() {
        let shares = Shares::new();
        let (light, heavy) = (shares.add(), shares.add());
        drop(now(&shares, &light).await.unwrap());
        drop(shares.enter(&heavy, 4 * HEAVY_BYTES as usize).await);
        drop(shares.enter(&heavy, 4 * HEAVY_BYTES as usize).await);
    }

    #[tokio::test(start_paused = true)]
    async fn connections_of_a_client_have_one_share() {
        let shares = Shares::new();
        let (light, name) = (shares.add(), Arc::from("client"));
        drop(now(&shares, &light).await.unwrap());
        let mut entered = Vec::new();
        for _connection in 0..10 {
            entered.extend(fill(&shares, &shares.of_client(&name), 100).await);
        }
        assert_eq!(entered.len() as u64 * CHUNK as u64, HEAVY_BYTES);
    }

    #[tokio::test(start_paused = true)]
    async fn a_sender_waits_for_the_series_that_it_began_beside_a_light_one_alone() {
        let shares = Shares::new();
        let sender = shares.add();
        drop(now(&shares, &sender).await.unwrap());
        shares.began(&sender, 1_000_000);
        assert!(now(&shares, &sender).await.is_some(), "it is alone, and light itself");
        let light = shares.add();
        drop(now(&shares, &light).await.unwrap());
        advance(LOOK_EVERY).await;
        let started = Instant::now();
        for _ in 0..3 {
            shares.began(&sender, 1_000);
        }
        drop(now(&shares, &light).await.expect("others do not wait"));
        drop(shares.enter(&sender, CHUNK).await);
        assert_eq!(started.elapsed(), 3_000 * SERIES_EVERY);
        shares.began(&sender, u64::MAX);
        drop(shares.enter(&sender, CHUNK).await);
        assert!(started.elapsed() <= 3_000 * SERIES_EVERY + SERIES_WAIT_MAX);
    }
}
