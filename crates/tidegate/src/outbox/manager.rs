use super::config::{OutgoingConfig, OutgoingConfigError};
use super::envelope::FailedMessage;
use super::envelope::{Answer, Envelope, Ticket};
use super::error::{EnqueueError, EnqueueReason, OutgoingSendError, SendFailure};
use super::hand_back::{HandBack, HandBackSender};
use super::lane::Lane;
use super::sender::{Sender, Shared, far};
use super::transport::Transport;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::Duration;
use tidegate_core::admission::MessageClass;
use tidegate_core::outbox::{DestinationQueueStats, Put, QueueState, RobustQueue};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

/// One queue and one sender for each destination.
///
/// At most [`OutgoingConfig::max_destinations`] at a time: a new one takes the place of the one that has been
/// without messages for longest, and is refused when every one has something queued or under way.
///
/// Dropping it ends its senders. What they had not sent then goes to the [`HandBack`];
/// [`shutdown`](Self::shutdown) is the orderly way.
pub struct OutgoingRequestManager<T: Transport> {
    shared: Arc<Shared<T>>,
    runtime: Handle,
    lanes: RwLock<Lanes<T>>,
    /// Counts uses, so that the least recent one can be told.
    uses: AtomicU64,
    evicted: AtomicU64,
    destinations_refused: AtomicU64,
}

/// Totals of a manager beyond the counts of its destinations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ManagerTotals {
    /// Destinations there are now.
    pub destinations: usize,
    /// Destinations that made room for others. Each was empty and idle.
    pub evicted: u64,
    /// Messages that were handed back because there was no room for their destination.
    pub destinations_refused: u64,
    /// Messages that went to the [`HandBack`].
    pub handed_back: u64,
    /// Messages that should have gone there and found it full, or gone. Zero in a program that reads it.
    pub hand_back_lost: u64,
}

type Taken<T> = Result<Put<Envelope<T>>, EnqueueError<Envelope<T>>>;

struct Lanes<T: Transport> {
    open: BTreeMap<T::Destination, Arc<Lane<T>>>,
    /// Lanes ever made: the number of the next.
    made: u64,
    closed: bool,
}

// === impl OutgoingRequestManager ===

impl<T: Transport> OutgoingRequestManager<T> {
    /// A manager without destinations, and where messages come back that nobody waited for.
    ///
    /// # Errors
    ///
    /// When the configuration is not valid, or this is called outside of a tokio runtime: senders are tasks of it.
    pub fn new(
        transport: T,
        config: OutgoingConfig,
    ) -> Result<(Self, HandBack<T>), OutgoingConfigError> {
        config.validate()?;
        let runtime = Handle::try_current().map_err(|_| OutgoingConfigError::NoRuntime)?;
        let (sender, receiver) = HandBackSender::new(config.hand_back_size);
        let shared = Shared {
            batch_max: transport.batch_max().max(1),
            transport,
            config,
            started: Instant::now(),
            hand_back: sender,
        };
        let manager = Self {
            shared: Arc::new(shared),
            runtime,
            lanes: RwLock::new(Lanes { open: BTreeMap::new(), made: 0, closed: false }),
            uses: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            destinations_refused: AtomicU64::new(0),
        };
        Ok((manager, receiver))
    }

    /// Queues a message and returns at once: how full the queue is, how long to wait before the next message,
    /// and the older message that made room for this one, if nobody waits for that.
    ///
    /// The delay is advice, and it is what keeps messages from being dropped: a producer that ignores it at
    /// [`QueueState::Saturated`] pushes out a message with each that it adds.
    ///
    /// If the message is later given up, it goes to the [`HandBack`].
    ///
    /// # Errors
    ///
    /// Hands the message back when the queue has no room that its class may take, when there are too many
    /// destinations, or after [`shutdown`](Self::shutdown).
    pub fn enqueue(
        &self,
        destination: &T::Destination,
        class: MessageClass,
        message: T::Message,
    ) -> Result<Put<T::Message>, EnqueueError<T::Message>> {
        let put = self.put(destination, self.envelope(class, message, None)).map_err(opened)?;
        let Put { state, level, delay, dropped } = put;
        let displaced = |dropped: Envelope<T>| dropped.fail(destination, SendFailure::Displaced);
        let dropped = dropped.and_then(displaced).map(|failed| failed.error.message);
        Ok(Put { state, level, delay, dropped })
    }

    /// Queues a message and waits until it is delivered.
    ///
    /// An older message that has to make room for it goes to its own caller, or to the [`HandBack`].
    ///
    /// # Errors
    ///
    /// Hands the message back with what ended it, and whether it may have been delivered all the same.
    ///
    /// # Panics
    ///
    /// Never: each message that was taken is answered, also by a sender that is itself ended half way.
    ///
    /// # Cancel safety
    ///
    /// Nothing is queued before the future is first polled. Dropped while the message waits, it withdraws it:
    /// the message is not sent, and its place comes free when its turn comes. Dropped while the message is
    /// being sent, it changes nothing but that the reply is discarded; if the send fails, the message goes to
    /// the [`HandBack`]. No other message is touched in any case.
    pub async fn send(
        &self,
        destination: &T::Destination,
        class: MessageClass,
        message: T::Message,
    ) -> Result<T::Reply, OutgoingSendError<T::Message, T::Error>> {
        let (waiter, answer) = oneshot::channel();
        let put = self
            .put(destination, self.envelope(class, message, Some(waiter)))
            .map_err(|error| opened(error).into_send_error())?;
        if let Some(dropped) = put.dropped {
            self.shared.hand_back.give_up(destination, dropped, SendFailure::Displaced);
        }
        match answer.await {
            Ok(answer) => answer,
            Err(_) => unreachable!("a sender answers every message that it was given"),
        }
    }

    /// Takes nothing new, sends what is queued for as long as `grace`, and returns what was not sent.
    ///
    /// A message that a caller waits for goes back to that caller instead. One that was being sent when the
    /// time was over may have been delivered, and says so.
    ///
    /// # Cancel safety
    ///
    /// Dropped, the manager stays closed and goes on sending. It can be called again, for the rest.
    pub async fn shutdown(&self, grace: Duration) -> Vec<FailedMessage<T>> {
        let lanes: Vec<_> = {
            let mut lanes = self.write();
            lanes.closed = true;
            lanes.open.values().cloned().collect()
        };
        lanes.iter().for_each(|lane| lane.drain());
        if timeout(grace, all_ended(&lanes)).await.is_err() {
            lanes.iter().for_each(|lane| lane.stop());
            all_ended(&lanes).await;
        }
        lanes.iter().flat_map(|lane| lane.take_unsent()).collect()
    }

    /// A snapshot of each destination, in the order of their keys; never more than
    /// [`OutgoingConfig::max_destinations`].
    #[must_use]
    pub fn stats(&self) -> Vec<DestinationQueueStats> {
        self.read().open.values().map(|lane| lane.stats()).collect()
    }

    /// A snapshot of one destination, if it has a queue.
    #[must_use]
    pub fn stats_of(&self, destination: &T::Destination) -> Option<DestinationQueueStats> {
        self.read().open.get(destination).map(|lane| lane.stats())
    }

    /// Totals beyond the counts of destinations.
    #[must_use]
    pub fn totals(&self) -> ManagerTotals {
        ManagerTotals {
            destinations: self.read().open.len(),
            evicted: self.evicted.load(Ordering::Relaxed),
            destinations_refused: self.destinations_refused.load(Ordering::Relaxed),
            handed_back: self.shared.hand_back.handed_back(),
            hand_back_lost: self.shared.hand_back.lost(),
        }
    }

    /// The transport it was made with.
    pub fn transport(&self) -> &T {
        &self.shared.transport
    }

    fn envelope(
        &self,
        class: MessageClass,
        message: T::Message,
        waiter: Option<oneshot::Sender<Answer<T>>>,
    ) -> Envelope<T> {
        let expires = far(Instant::now(), self.shared.config.message_timeout);
        let ticket = Ticket { class, expires, attempts: 0, maybe_delivered: false, waiter };
        Envelope { message, ticket }
    }

    fn put(&self, destination: &T::Destination, envelope: Envelope<T>) -> Taken<T> {
        let tick = self.uses.fetch_add(1, Ordering::Relaxed);
        // A lane is only removed under the write lock: while this is held, what was found can't be evicted.
        let lanes = self.read();
        match lanes.open.get(destination) {
            Some(lane) => lane.put(envelope, tick),
            None => {
                drop(lanes);
                self.put_new(destination, envelope, tick)
            }
        }
    }

    fn put_new(&self, destination: &T::Destination, envelope: Envelope<T>, tick: u64) -> Taken<T> {
        let mut lanes = self.write();
        if lanes.closed {
            return Err(not_taken(envelope, EnqueueReason::Closed));
        }
        // Another producer may have made it between the two locks.
        if !lanes.open.contains_key(destination) {
            let max = self.shared.config.max_destinations;
            if lanes.open.len() >= max && !self.evict(&mut lanes) {
                self.destinations_refused.fetch_add(1, Ordering::Relaxed);
                return Err(not_taken(envelope, EnqueueReason::TooManyDestinations { max }));
            }
            let Ok(queue) = RobustQueue::new(self.shared.config.queue) else {
                unreachable!("the configuration was checked when the manager was made")
            };
            let lane = Arc::new(Lane::new(destination.clone(), queue));
            let sender = Sender::new(Arc::clone(&self.shared), Arc::clone(&lane), lanes.made);
            lanes.made += 1;
            lanes.open.insert(destination.clone(), lane);
            self.runtime.spawn(sender.run());
        }
        lanes.open[destination].put(envelope, tick)
    }

    /// Ends the destination that was used least recently of those that are empty and idle.
    fn evict(&self, lanes: &mut Lanes<T>) -> bool {
        let idle = lanes.open.values().filter(|lane| lane.is_idle());
        let Some(lane) = idle.min_by_key(|lane| lane.last_used()).cloned() else { return false };
        lanes.open.remove(&lane.destination);
        lane.stop();
        self.evicted.fetch_add(1, Ordering::Relaxed);
        // Under the lock, so that it can't close what a new queue for the same destination has just opened.
        self.shared.transport.forget(&lane.destination);
        true
    }

    /// Nothing in here panics half way, so a poisoned lock holds what it should.
    fn read(&self) -> RwLockReadGuard<'_, Lanes<T>> {
        self.lanes.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Lanes<T>> {
        self.lanes.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Transport> Drop for OutgoingRequestManager<T> {
    fn drop(&mut self) {
        self.read().open.values().for_each(|lane| lane.abandon());
    }
}

impl<T: Transport> fmt::Debug for OutgoingRequestManager<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutgoingRequestManager").field("totals", &self.totals()).finish()
    }
}

async fn all_ended<T: Transport>(lanes: &[Arc<Lane<T>>]) {
    for lane in lanes {
        lane.ended().await;
    }
}

fn not_taken<T: Transport>(
    envelope: Envelope<T>,
    reason: EnqueueReason,
) -> EnqueueError<Envelope<T>> {
    let delay = Duration::ZERO;
    EnqueueError { message: envelope, reason, state: QueueState::Healthy, delay }
}

/// The message without what the manager had put around it.
fn opened<T: Transport>(error: EnqueueError<Envelope<T>>) -> EnqueueError<T::Message> {
    let EnqueueError { message, reason, state, delay } = error;
    EnqueueError { message: message.message, reason, state, delay }
}
