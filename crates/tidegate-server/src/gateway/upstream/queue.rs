use crate::config::{AdmissionConfig, OutboxConfig};
use crate::http::RejectionCause;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidegate::outbox::{QueueConfig, QueueConfigError, QueueStats, RobustQueue, SenderStats};
use tidegate::{InFlightTracker, MessageClass, MessagePriority, OwnedPermit};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// The queue of one upstream: how many requests it is sent at once, which requests wait, and how much of the
/// gateway all of them may hold together, so that a slow upstream does not stand in the way of the others.
#[derive(Debug)]
pub struct UpstreamQueue {
    /// This upstream's share of the admission limits; `None` for all of them.
    share: Option<Arc<InFlightTracker>>,
    /// Requests sent at once; 0: as many as come.
    concurrency: usize,
    wait_max: Duration,
    positions: Mutex<Positions>,
    /// Requests that did not have to wait.
    passed: AtomicU64,
}

#[derive(Debug)]
struct Positions {
    sent: usize,
    waiting: RobustQueue<Waiter>,
    /// Waiters that left; they are removed when their turn comes, their position is needed, or a snapshot is
    /// taken.
    gone: usize,
    /// Requests displaced by those for which the queue itself drops nothing.
    displaced: u64,
    totals: SenderStats,
}

/// A queued request.
#[derive(Debug)]
struct Waiter {
    priority: MessagePriority,
    turn: oneshot::Sender<Slot>,
}

/// A request's turn to be sent. The next one's comes when it is dropped.
#[derive(Debug)]
pub struct Turn {
    _share: Option<OwnedPermit>,
    _slot: Option<Slot>,
}

#[derive(Debug)]
struct Slot {
    queue: Option<Arc<UpstreamQueue>>,
}

// === impl UpstreamQueue ===

impl UpstreamQueue {
    /// The queue of one of `upstreams` behind a gateway with these limits.
    ///
    /// # Errors
    ///
    /// When the sizes of the queue contradict each other.
    pub fn new(
        config: &OutboxConfig,
        admission: &AdmissionConfig,
        upstreams: usize,
    ) -> Result<Self, QueueConfigError> {
        let share = (upstreams > 1 && config.share < 1.0).then(|| {
            let limits = admission.limits.part(config.share);
            Arc::new(InFlightTracker::new(limits, admission.sharing))
        });
        let queue = QueueConfig {
            primary_size: config.queue_size,
            overflow_size: config.overflow_size,
            ..QueueConfig::default()
        };
        Ok(Self {
            share,
            concurrency: config.concurrency,
            wait_max: config.wait_max,
            positions: Mutex::new(Positions {
                sent: 0,
                waiting: RobustQueue::new(queue)?,
                gone: 0,
                displaced: 0,
                totals: SenderStats::default(),
            }),
            passed: AtomicU64::new(0),
        })
    }

    /// Waits for a request's turn to be sent, first come, first served.
    ///
    /// # Errors
    ///
    /// When it may not wait, or has waited for too long.
    ///
    /// # Cancel safety
    ///
    /// A request that stops waiting leaves the queue; a turn that came at the same moment goes to the next.
    pub async fn enter(
        self: &Arc<Self>,
        priority: MessagePriority,
    ) -> Result<Turn, RejectionCause> {
        let share = match &self.share {
            Some(share) => {
                Some(share.try_acquire_owned(priority).map_err(|_| RejectionCause::UpstreamShare)?)
            }
            None => None,
        };
        if self.concurrency == 0 {
            self.passed.fetch_add(1, Ordering::Relaxed);
            return Ok(Turn { _share: share, _slot: None });
        }
        let slot = match self.queue_up(priority)? {
            Ok(slot) => slot,
            Err(turn) => self.wait(turn).await?,
        };
        Ok(Turn { _share: share, _slot: Some(slot) })
    }

    /// A snapshot, for an upstream that so many requests are with.
    #[must_use]
    pub fn stats(&self, with_upstream: usize) -> (QueueStats, SenderStats) {
        let mut queue = self.lock();
        // Nobody waits who has left: an upstream that hangs would look as slow as it was for ever.
        queue.forget_gone();
        let mut stats = queue.waiting.stats();
        let passed = self.passed.load(Ordering::Relaxed);
        stats.total_enqueued += passed;
        stats.total_dropped += queue.displaced;
        let in_flight = match self.concurrency {
            0 => with_upstream,
            _ => queue.sent,
        };
        let total_sent = queue.totals.total_sent + passed;
        (stats, SenderStats { in_flight, total_sent, ..queue.totals })
    }

    /// A slot at once, or the receiver of a slot to come.
    fn queue_up(
        self: &Arc<Self>,
        priority: MessagePriority,
    ) -> Result<Result<Slot, oneshot::Receiver<Slot>>, RejectionCause> {
        let mut queue = self.lock();
        if queue.sent < self.concurrency && queue.waiting.is_empty() {
            queue.sent += 1;
            self.passed.fetch_add(1, Ordering::Relaxed);
            return Ok(Ok(Slot { queue: Some(Arc::clone(self)) }));
        }
        let (turn, comes) = oneshot::channel();
        // Whoever is displaced learns it when its sender is dropped here.
        queue.put(Waiter { priority, turn })?;
        Ok(Err(comes))
    }

    async fn wait(&self, comes: oneshot::Receiver<Slot>) -> Result<Slot, RejectionCause> {
        let leaving = Leaving { queue: self };
        let waited = timeout(self.wait_max, comes).await;
        std::mem::forget(leaving);
        match waited {
            Ok(Ok(slot)) => Ok(slot),
            Ok(Err(_displaced)) => Err(RejectionCause::Displaced),
            Err(_elapsed) => {
                self.leave();
                Err(RejectionCause::QueueWait(self.wait_max))
            }
        }
    }

    fn leave(&self) {
        let mut queue = self.lock();
        queue.gone += 1;
        queue.totals.total_withdrawn += 1;
    }

    /// Gives a free slot to the request that has waited longest and is still there.
    fn pass_on(self: &Arc<Self>) {
        loop {
            let waiter = {
                let mut queue = self.lock();
                match queue.waiting.get() {
                    Some(waiter) => waiter,
                    None => {
                        queue.sent -= 1;
                        queue.gone = 0;
                        return;
                    }
                }
            };
            let slot = Slot { queue: Some(Arc::clone(self)) };
            match waiter.turn.send(slot) {
                Ok(()) => {
                    self.lock().totals.total_sent += 1;
                    return;
                }
                Err(mut unwanted) => {
                    unwanted.queue = None;
                    let mut queue = self.lock();
                    queue.gone = queue.gone.saturating_sub(1);
                }
            }
        }
    }

    /// A panic while the lock is held leaves a queue that is right: every change to it is one call.
    fn lock(&self) -> MutexGuard<'_, Positions> {
        self.positions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Positions ===

impl Positions {
    fn put(&mut self, waiter: Waiter) -> Result<(), RejectionCause> {
        let class = class_of(waiter.priority);
        let full = self.waiting.len() >= self.waiting.config().bound();
        if full {
            self.forget_gone();
        }
        if self.waiting.len() >= self.waiting.config().bound() && class == MessageClass::Dispatch {
            self.displaced += u64::from(self.make_room(waiter.priority));
        }
        let put = self.waiting.put(class, waiter);
        put.map(|_displaced| ())
            .map_err(|_| RejectionCause::QueueFull { waiting: self.waiting.len() })
    }

    fn forget_gone(&mut self) {
        if self.gone > 0 {
            self.waiting.retain(|waiter| !waiter.turn.is_closed());
            self.gone = 0;
        }
    }

    /// Displaces the longest waiting request of a lower priority. A queue of messages never
    /// drops for what starts work; of clients that wait, the more urgent one comes first.
    fn make_room(&mut self, priority: MessagePriority) -> bool {
        let mut let_go = false;
        self.waiting.retain(|waiter| {
            let goes = !let_go && waiter.priority > priority;
            let_go |= goes;
            !goes
        });
        let_go
    }
}

/// The class of a queued request, by its priority: see the table of classes.
fn class_of(priority: MessagePriority) -> MessageClass {
    match priority {
        MessagePriority::Critical => MessageClass::Control,
        MessagePriority::High => MessageClass::Dispatch,
        MessagePriority::Normal => MessageClass::Data,
        MessagePriority::Low => MessageClass::Telemetry,
    }
}

// === impl Slot ===

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(queue) = self.queue.take() {
            queue.pass_on();
        }
    }
}

/// Counts a waiter that is dropped while it waits.
struct Leaving<'a> {
    queue: &'a UpstreamQueue,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        self.queue.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use MessagePriority::{High, Low, Normal};

    fn queue(outbox: &str, upstreams: usize) -> Arc<UpstreamQueue> {
        let config = Config::from_toml(outbox).unwrap();
        Arc::new(UpstreamQueue::new(&config.outbox, &config.admission, upstreams).unwrap())
    }

    /// A request that enters the queue, on a task of its own.
    async fn enqueued(
        queue: &Arc<UpstreamQueue>,
        priority: MessagePriority,
    ) -> tokio::task::JoinHandle<Result<Turn, RejectionCause>> {
        let (queue, before) = (Arc::clone(queue), queue.lock().waiting.len());
        let waiting = Arc::clone(&queue);
        let task = tokio::spawn(async move { queue.enter(priority).await });
        for _ in 0..1000 {
            if waiting.lock().waiting.len() != before || task.is_finished() {
                break;
            }
            tokio::task::yield_now().await;
        }
        task
    }

    const ONE: &str = "[outbox]\nconcurrency = 1\nqueue_size = 2\noverflow_size = 0";

    #[tokio::test(start_paused = true)]
    async fn turns_come_in_order_and_none_is_lost_with_who_left() {
        let queue = queue(ONE, 1);
        let first = queue.enter(Normal).await.unwrap();
        let left = enqueued(&queue, Normal).await;
        let second = enqueued(&queue, Normal).await;
        left.abort();
        assert!(left.await.is_err_and(|error| error.is_cancelled()));
        drop(first);
        let second = second.await.unwrap().unwrap();
        assert_eq!(queue.stats(0).1.in_flight, 1);
        drop(second);
        assert_eq!((queue.stats(0).1.in_flight, queue.lock().waiting.len()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_comes_too_late_goes_to_the_next() {
        let queue = queue(ONE, 1);
        let first = queue.enter(Normal).await.unwrap();
        let late = enqueued(&queue, Normal).await;
        tokio::time::sleep(Duration::from_secs(6)).await;
        let refused = late.await.unwrap().unwrap_err();
        assert_eq!(refused, RejectionCause::QueueWait(Duration::from_secs(5)));
        drop(first);
        assert!(queue.enter(Normal).await.is_ok(), "the slot was not given to who had left");
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_left_make_room_at_the_bound() {
        let queue = queue(ONE, 1);
        let _first = queue.enter(High).await.unwrap();
        for _ in 0..2 {
            let left = enqueued(&queue, High).await;
            left.abort();
            let _ = left.await;
        }
        let third = enqueued(&queue, High).await;
        assert!(!third.is_finished(), "it waits: nobody else does any more");
        third.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn at_the_bound_a_lower_priority_gives_way_and_a_higher_one_is_not_displaced() {
        let queue = queue(ONE, 1);
        let _first = queue.enter(Normal).await.unwrap();
        let (low, high) = (enqueued(&queue, Low).await, enqueued(&queue, High).await);
        let urgent = enqueued(&queue, High).await;
        assert_eq!(low.await.unwrap().unwrap_err(), RejectionCause::Displaced);
        let full = queue.enter(High).await.unwrap_err();
        assert_eq!(full, RejectionCause::QueueFull { waiting: 2 });
        let full = queue.enter(Low).await.unwrap_err();
        assert_eq!(full, RejectionCause::QueueFull { waiting: 2 });
        assert!(!high.is_finished() && !urgent.is_finished());
        high.abort();
        urgent.abort();
    }

    #[tokio::test]
    async fn one_of_several_upstreams_holds_no_more_than_its_share() {
        let limits =
            "[admission]\nglobal_limit = 20\nhigh_limit = 0\nnormal_limit = 10\nlow_limit = 0";
        let shared = queue(limits, 2);
        let mut held = Vec::new();
        while let Ok(turn) = shared.enter(Normal).await {
            held.push(turn);
        }
        assert_eq!(held.len(), 5);
        assert_eq!(shared.enter(Normal).await.unwrap_err(), RejectionCause::UpstreamShare);
        held.pop();
        assert!(shared.enter(Normal).await.is_ok());
        let alone = queue(limits, 1);
        let all: Vec<_> =
            futures_util::future::join_all((0..50).map(|_| alone.enter(Normal))).await;
        assert!(all.iter().all(Result::is_ok), "alone it may hold everything");
    }
}
