use super::request::{HeldPermit, Slab};
use tidegate_core::admission::{InFlightTracker, MessageClass, MessagePriority};
use tidegate_core::outbox::{QueueConfig, RobustQueue};

/// The queue in front of one upstream: its concurrency limit, the requests that wait for it, and the share of the
/// gateway's limits that all of them may hold.
#[derive(Debug)]
pub struct Queue<'a> {
    share: Option<&'a InFlightTracker>,
    /// Requests sent at once; 0: as many as come.
    concurrency: usize,
    sent: usize,
    /// `None` where no request may wait.
    waiting: Option<RobustQueue<Waiter>>,
    /// Waiters that left; they are removed when their turn comes or their slot is needed.
    gone: usize,
}

#[derive(Clone, Copy, Debug)]
struct Waiter {
    id: u32,
    stamp: u32,
    priority: MessagePriority,
}

/// The result of entering a queue.
#[derive(Debug)]
pub enum Entered<'a> {
    /// The request can be sent at once.
    Passed(HeldPermit<'a>),
    /// The request is queued, and may have displaced another.
    Waits { share: HeldPermit<'a>, displaced: Option<u32> },
}

/// Why a request was not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueRefusal {
    /// Requests of this upstream hold as much of the gateway as they may.
    Share,
    /// The queue is full.
    Full,
}

// === impl Queue ===

impl<'a> Queue<'a> {
    pub fn new(share: Option<&'a InFlightTracker>, concurrency: usize, queue: QueueConfig) -> Self {
        // A queue of core has room for one at least: what is not valid is none.
        Self { share, concurrency, sent: 0, waiting: RobustQueue::new(queue).ok(), gone: 0 }
    }

    pub fn enter(
        &mut self,
        id: u32,
        priority: MessagePriority,
        requests: &Slab<'a>,
    ) -> Result<Entered<'a>, QueueRefusal> {
        let share = match self.share {
            Some(share) => Some(share.try_acquire(priority).map_err(|_| QueueRefusal::Share)?),
            None => None,
        };
        if self.concurrency == 0 {
            return Ok(Entered::Passed(share));
        }
        let nobody_waits = self.waiting.as_ref().is_none_or(RobustQueue::is_empty);
        if self.sent < self.concurrency && nobody_waits {
            self.sent += 1;
            return Ok(Entered::Passed(share));
        }
        // Its stamp is the one that it will have while it waits.
        let stamp = requests.get(id).stamp.wrapping_add(1);
        let displaced = self.put(Waiter { id, stamp, priority }, requests)?;
        Ok(Entered::Waits { share, displaced })
    }

    fn put(&mut self, waiter: Waiter, requests: &Slab<'_>) -> Result<Option<u32>, QueueRefusal> {
        let Some(waiting) = &mut self.waiting else { return Err(QueueRefusal::Full) };
        let class = class_of(waiter.priority);
        let bound = waiting.config().bound();
        if waiting.len() >= bound && self.gone > 0 {
            waiting.retain(|other| requests.is_at(other.id, other.stamp));
            self.gone = 0;
        }
        let mut displaced = None;
        if waiting.len() >= bound && class == MessageClass::Dispatch {
            // A queue of messages never drops for what starts work; of clients, the more urgent one comes
            // first.
            waiting.retain(|other| {
                let goes = displaced.is_none() && other.priority > waiter.priority;
                if goes {
                    displaced = Some(*other);
                }
                !goes
            });
        }
        let put = waiting.put(class, waiter).map_err(|_| QueueRefusal::Full)?;
        let displaced = displaced.or(put.dropped);
        Ok(displaced.filter(|other| requests.is_at(other.id, other.stamp)).map(|other| other.id))
    }

    /// Counts a waiter that left.
    pub fn leave(&mut self) {
        self.gone += 1;
    }

    /// Passes a free slot to the request that waits longest and is still there.
    pub fn pass_on(&mut self, requests: &Slab<'_>) -> Option<u32> {
        if self.concurrency == 0 {
            return None;
        }
        while let Some(waiter) = self.waiting.as_mut().and_then(RobustQueue::get) {
            if requests.is_at(waiter.id, waiter.stamp) {
                return Some(waiter.id);
            }
            self.gone = self.gone.saturating_sub(1);
        }
        self.sent = self.sent.saturating_sub(1);
        self.gone = 0;
        None
    }

    /// Requests that hold a slot.
    pub fn sent(&self) -> usize {
        self.sent
    }

    pub fn has_slots(&self) -> bool {
        self.concurrency > 0
    }

    /// Requests in its queue, also those that left and were not found yet.
    pub fn waiting(&self) -> usize {
        self.waiting.as_ref().map_or(0, RobustQueue::len)
    }

    /// Requests that wait and are still there.
    pub fn waiting_now(&self) -> usize {
        self.waiting().saturating_sub(self.gone)
    }
}

/// Returns the message class of a priority.
fn class_of(priority: MessagePriority) -> MessageClass {
    match priority {
        MessagePriority::Critical => MessageClass::Control,
        MessagePriority::High => MessageClass::Dispatch,
        MessagePriority::Normal => MessageClass::Data,
        MessagePriority::Low => MessageClass::Telemetry,
    }
}
