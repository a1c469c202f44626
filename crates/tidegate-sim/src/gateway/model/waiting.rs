use super::ask::Ask;
use super::check::Broken;
use super::fleet::{Fleet, NoRoom, Reservation};
use super::record::{Record, Waiter};
use super::settings::Settings;
use crate::agenda::Time;
use crate::gateway::Flaw;
use std::time::Duration;
use tidegate_core::admission::MessagePriority;
use tidegate_core::queue::{
    Arrival, FlowId, Next, NotQueuedReason, Offer, PoolQueue, PoolQueueConfig, PoolQueueTotals,
};
use tidegate_core::rng::Rng;

/// The queue of the pool, as it ships, and a record of the requests in it that it is checked against.
#[derive(Debug)]
pub struct Waiting {
    queue: PoolQueue<u32>,
    record: Record,
    bound: usize,
    /// Totals of the pool, which the queue estimates waits by.
    ended: u64,
    service: Duration,
    sent: [u64; 3],
    plant: Option<Flaw>,
}

/// A request that left the queue because slots were offered.
#[derive(Debug)]
pub enum Left<'a> {
    /// A request that has a slot.
    Served(u32, Reservation<'a>),
    /// A request that has waited for as long as it may.
    Expired(u32),
}

// === impl Waiting ===

impl Waiting {
    pub fn new(settings: &Settings, plant: Option<Flaw>) -> Self {
        let config = settings.queue;
        let size = if plant == Some(Flaw::UnboundedQueue) { 1_000_000 } else { config.size };
        Self {
            queue: PoolQueue::new(PoolQueueConfig { size, ..config }),
            record: Record::default(),
            bound: config.size + config.overflow_size,
            ended: 0,
            service: Duration::ZERO,
            sent: [0; 3],
            plant,
        }
    }

    /// Returns `true` if a request may ask for a slot at once: none as urgent waits.
    pub fn lets_pass(&self, priority: MessagePriority) -> bool {
        self.queue.most_urgent().is_none_or(|waits| waits > priority)
    }

    /// Adds a request that found no slot; `until` is the end of its wait. Returns the requests that it displaced,
    /// or `None` if it may not wait.
    pub fn arrive(
        &mut self,
        (id, ask, flow): (u32, Ask, u64),
        until: Time,
        in_flight: u64,
        now: Time,
    ) -> Option<Vec<u32>> {
        let (until, now) = (Duration::from_nanos(until), Duration::from_nanos(now));
        self.queue.observe(now, self.ended, self.service.as_micros() as u64, self.sent);
        let (priority, flow) = (self.band_of(ask.priority), FlowId(flow));
        let had_turn = !ask.tried.ids().is_empty();
        let arrival = Arrival { flow, until, had_turn, ..Arrival::new(priority, id) };
        match self.queue.arrive(arrival, in_flight, now) {
            Ok(pushed) => {
                self.record.totals.queued += 1;
                let waiter = Waiter { ask, key: pushed.key, until };
                self.record.by_priority[ask.priority.index()].insert(id, waiter);
                for other in &pushed.displaced {
                    self.record.totals.displaced += 1;
                    self.record.remove(*other);
                }
                Some(pushed.displaced)
            }
            Err(refused) => {
                match refused.reason {
                    NotQueuedReason::Disabled => {}
                    NotQueuedReason::Full => self.record.totals.refused_full += 1,
                    NotQueuedReason::Wait => self.record.totals.refused_wait += 1,
                }
                None
            }
        }
    }

    /// Offers a slot to the requests that wait, in the order of the queue.
    pub fn next<'a>(
        &mut self,
        fleet: &mut Fleet<'a>,
        rng: &mut Rng,
        now: Time,
    ) -> Result<Option<Left<'a>>, Broken> {
        let (record, mut broken) = (&self.record, None);
        let next = self.queue.next(Duration::from_nanos(now), |id| {
            let Some(ask) = record.ask(*id) else { return Offer::NotForThis };
            match fleet.reserve(ask, record, rng.next_u64(), now) {
                Ok(Ok(reservation)) => Offer::Taken(reservation),
                Ok(Err(NoRoom::Share)) => Offer::NotForThis,
                // The slots that are free are those of upstreams that it was already tried at.
                Ok(Err(_)) if !ask.tried.ids().is_empty() && fleet.has_free() => Offer::NotForThis,
                Ok(Err(_)) => Offer::NoSlot,
                Err(found) => {
                    broken = Some(found);
                    Offer::NoSlot
                }
            }
        });
        if let Some(broken) = broken {
            return Err(broken);
        }
        Ok(next.map(|next| match next {
            Next::Served { item, slot, .. } => {
                self.record.totals.served += 1;
                self.record.remove(item);
                Left::Served(item, slot)
            }
            Next::Expired { item } => {
                self.record.totals.expired += 1;
                self.record.remove(item);
                Left::Expired(item)
            }
        }))
    }

    /// Removes a request whose client left.
    pub fn leave(&mut self, id: u32) {
        self.record.totals.left += 1;
        let waiter = self.record.remove(id);
        if let Some(waiter) = waiter.filter(|_| self.plant != Some(Flaw::GhostWaiter)) {
            self.queue.leave(waiter.key);
        }
    }

    /// Removes a request that has waited for as long as it may.
    pub fn expire(&mut self, id: u32) {
        self.record.totals.expired += 1;
        if let Some(waiter) = self.record.remove(id) {
            self.queue.expire(waiter.key);
        }
    }

    /// Counts a request that is sent to an upstream.
    pub fn count_sent(&mut self, priority: MessagePriority) {
        // High is the first of three: Critical has no upstream.
        self.sent[priority.index().saturating_sub(1)] += 1;
    }

    /// Counts the end of a request that was with an upstream for so long.
    pub fn count_ended(&mut self, in_flight: Duration) {
        self.ended += 1;
        self.service += in_flight;
    }

    pub fn record(&self) -> &Record {
        &self.record
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Checks the bound of the queue, and that no request is lost or counted twice.
    pub fn check(&self) -> Result<(), Broken> {
        let (waiting, bound) = (self.queue.len(), self.bound);
        if waiting > bound {
            let text = format!("{waiting} requests wait, and {bound} may");
            return Err(Broken::new(Broken::QUEUE, text));
        }
        let PoolQueueTotals { queued, served, displaced, expired, left, .. } = self.queue.totals();
        let known = served + displaced + expired + left + waiting as u64;
        let recorded = self.record.totals;
        if queued != known || self.queue.totals() != recorded || waiting != self.record.len() {
            let text = format!(
                "{queued} were queued and {known} are known of; {} wait of {recorded:?}",
                self.record.len()
            );
            return Err(Broken::new(Broken::WAITERS, text));
        }
        Ok(())
    }

    /// Checks that no slot is free that each of the most urgent requests could use.
    pub fn check_idle(&self, fleet: &Fleet<'_>, now: Time) -> Result<(), Broken> {
        if self.is_empty() || !fleet.has_free() {
            return Ok(());
        }
        let now = Duration::from_nanos(now);
        let first = self.record.by_priority.iter().find(|waiters| !waiters.is_empty());
        let free_for = |waiter: &Waiter| {
            // One that has expired leaves at this very moment.
            (waiter.until > now).then(|| fleet.free_for(&waiter.ask)).flatten()
        };
        let free: Option<Vec<_>> =
            first.and_then(|waiters| waiters.values().map(free_for).collect());
        match free.as_deref().and_then(<[usize]>::first) {
            Some(upstream) => {
                let text = format!("upstream {upstream} has a free slot, and {} wait", self.len());
                Err(Broken::new(Broken::IDLE, text))
            }
            None => Ok(()),
        }
    }

    /// Returns the priority that a request is queued with: its own unless the flaw is planted.
    fn band_of(&self, priority: MessagePriority) -> MessagePriority {
        match (self.plant, priority) {
            (Some(Flaw::UpsideDown), MessagePriority::High) => MessagePriority::Low,
            (Some(Flaw::UpsideDown), MessagePriority::Low) => MessagePriority::High,
            _ => priority,
        }
    }
}
