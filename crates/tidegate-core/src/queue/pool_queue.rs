use super::bounds::QueueBounds;
use super::entry::{Arrival, QueueKey};
use super::fair_queue::{FairQueue, Next, Offer, Pushed};
use super::wait_predictor::{WaitPredictor, WaitTarget};
use crate::admission::MessagePriority;
use crate::outbox::{Gauge, QueueConfig, QueueState};
use serde::Serialize;
use std::fmt;
use std::time::Duration;

/// The bounds of a [`PoolQueue`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PoolQueueConfig {
    /// Requests that may wait; 0 refuses every request that finds no slot.
    pub size: usize,
    /// Further requests that may wait, for a burst.
    pub overflow_size: usize,
    /// Bytes of requests that may wait.
    pub bytes: u64,
    /// The guard against starvation, see [`QueueBounds`].
    pub starvation_guard: u32,
    /// The longest wait that is worth it.
    pub target: WaitTarget,
}

/// The queue of one pool: [`FairQueue`] behind a door that turns away what could not be served in time.
///
/// Under lasting overload the door keeps the wait at the [target](WaitTarget), which is shorter where the
/// queue has not emptied since it was as long: a burst ends, a standing queue only adds latency. The bounds are
/// for the time until a service time is known.
#[derive(Debug)]
pub struct PoolQueue<T> {
    queue: FairQueue<T>,
    config: PoolQueueConfig,
    gauge: Gauge,
    estimate: WaitPredictor,
    totals: PoolQueueTotals,
    /// By priority: the time of the first refusal for a long wait since the band and those above it were empty.
    refusing_since: [Option<Duration>; 3],
}

/// Totals of a [`PoolQueue`]. `queued` is the sum of `served`, `displaced`, `expired`, `left` and those that wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PoolQueueTotals {
    /// Requests that waited or wait.
    pub queued: u64,
    /// Requests that waited and got a slot.
    pub served: u64,
    /// Requests that gave way to more urgent ones, or to another flow.
    pub displaced: u64,
    /// Requests that waited for as long as they may.
    pub expired: u64,
    /// Requests whose client left.
    pub left: u64,
    /// Requests turned away because the queue was full.
    pub refused_full: u64,
    /// Requests turned away because they would have waited for too long.
    pub refused_wait: u64,
}

/// A request that may not wait. Nothing has changed.
#[derive(Clone, PartialEq, Eq)]
pub struct NotQueued<T> {
    /// The request.
    pub item: T,
    /// The reason.
    pub reason: NotQueuedReason,
    /// The position that it would have had: 1 for the next to be served.
    pub position: usize,
    /// The wait that it would have had, if that is known.
    pub wait: Option<Duration>,
}

/// The reason that a request may not wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotQueuedReason {
    /// Nothing may wait: the size of the queue is 0.
    Disabled,
    /// The queue is full of requests that are at least as urgent.
    Full,
    /// A wait that would be longer than it may be.
    Wait,
}

// === impl PoolQueueConfig ===

impl Default for PoolQueueConfig {
    fn default() -> Self {
        let QueueBounds { bytes, starvation_guard, .. } = QueueBounds::default();
        let QueueConfig { primary_size, overflow_size, .. } = QueueConfig::default();
        let target = WaitTarget::default();
        Self { size: primary_size, overflow_size, bytes, starvation_guard, target }
    }
}

// === impl PoolQueue ===

impl<T> PoolQueue<T> {
    /// Creates an empty queue.
    #[must_use]
    pub fn new(config: PoolQueueConfig) -> Self {
        let PoolQueueConfig { size, overflow_size, bytes, starvation_guard, .. } = config;
        let count = if size == 0 { 0 } else { size.saturating_add(overflow_size) };
        let states = QueueConfig { primary_size: size.max(1), overflow_size, ..Default::default() };
        Self {
            queue: FairQueue::new(QueueBounds { count, bytes, starvation_guard }),
            config,
            gauge: Gauge::new(&states),
            estimate: WaitPredictor::default(),
            totals: PoolQueueTotals::default(),
            refusing_since: [None; 3],
        }
    }

    /// Returns the configuration.
    #[must_use]
    pub fn config(&self) -> &PoolQueueConfig {
        &self.config
    }

    /// Records the totals of the pool, as [`WaitPredictor::observe`].
    pub fn observe(&mut self, now: Duration, ended: u64, service_us: u64, sent: [u64; 3]) {
        self.estimate.observe(now, ended, service_us, sent);
    }

    /// Records the totals of responses that began, as [`WaitPredictor::observe_first_bytes`].
    pub fn observe_first_bytes(&mut self, began: u64, first_byte_us: u64) {
        self.estimate.observe_first_bytes(began, first_byte_us);
    }

    /// Adds a request to the queue of a pool that has so many requests in flight, if it can be served in time.
    ///
    /// # Errors
    ///
    /// When it may not wait. Nothing has changed but the totals.
    pub fn arrive(
        &mut self,
        arrival: Arrival<T>,
        in_flight: u64,
        now: Duration,
    ) -> Result<Pushed<T>, NotQueued<T>> {
        let (higher, own) = self.queue.ahead_of(arrival.priority, arrival.flow, arrival.weight);
        let position = higher + own + 1;
        // Flows that wait now go on to arrive and take their turns, which a count of those waiting does not show.
        let wait = self.estimate.wait(arrival.priority, (higher, own), in_flight);
        let wait = wait.max(self.queue.flow_wait(arrival.priority, arrival.flow, now));
        let refuse = |item, reason| Err(NotQueued { item, reason, position, wait });
        if self.config.size == 0 {
            return refuse(arrival.item, NotQueuedReason::Disabled);
        }
        let (service, first_byte) = (self.estimate.service(), self.estimate.first_byte());
        // Nothing waits in these bands, nor above them.
        let empty = self.queue.most_urgent().map_or(self.refusing_since.len(), band);
        self.refusing_since[..empty].fill(None);
        let band = band(arrival.priority);
        let standing = self.refusing_since[band].map(|since| now.saturating_sub(since));
        let target =
            self.config.target.of_standing(standing.unwrap_or_default(), service, first_byte);
        let allowed = target.min(arrival.until.saturating_sub(now));
        // The first of a band may always wait until its deadline: a rate says little about the next slot alone.
        let is_judged = own > 0 && !arrival.had_turn;
        let is_too_long = is_judged && wait.is_some_and(|wait| wait > allowed);
        if is_too_long && allowed == target {
            self.refusing_since[band].get_or_insert(now);
        }
        if is_too_long || arrival.until <= now {
            self.totals.refused_wait += 1;
            return refuse(arrival.item, NotQueuedReason::Wait);
        }
        match self.queue.push(arrival, now) {
            Ok(pushed) => {
                self.totals.queued += 1;
                self.totals.displaced += pushed.displaced.len() as u64;
                self.gauge.observe(self.queue.len());
                Ok(pushed)
            }
            Err(full) => {
                self.totals.refused_full += 1;
                refuse(full.item, NotQueuedReason::Full)
            }
        }
    }

    /// Returns the time after which a request is not worth a slot any more: the target, where responses begin
    /// long before they end. A batch of streams that ends as a whole would otherwise serve those that waited for
    /// all of it, and those that arrive meanwhile would wait for the next.
    fn wait_max(&self) -> Duration {
        let (service, first_byte) = (self.estimate.service(), self.estimate.first_byte());
        let target = self.config.target;
        let streams = first_byte.is_some_and(|first| {
            let begins_early = |service: Duration| first.mul_f64(target.services) < service;
            service.is_none_or(begins_early)
        });
        if streams { target.of(service, first_byte) } else { Duration::MAX }
    }

    /// Offers slots in the order of service, as [`FairQueue::next`].
    pub fn next<S>(
        &mut self,
        now: Duration,
        offer: impl FnMut(&T) -> Offer<S>,
    ) -> Option<Next<T, S>> {
        let next = self.queue.next_within(self.wait_max(), now, offer);
        match &next {
            Some(Next::Served { .. }) => self.totals.served += 1,
            Some(Next::Expired { .. }) => self.totals.expired += 1,
            None => return next,
        }
        self.gauge.observe(self.queue.len());
        next
    }

    /// Removes a request whose client left. Returns `None` if it is no longer there.
    pub fn leave(&mut self, key: QueueKey) -> Option<T> {
        let item = self.queue.remove(key)?;
        self.totals.left += 1;
        self.gauge.observe(self.queue.len());
        Some(item)
    }

    /// Removes a request that has waited for as long as it may. Returns `None` if it is no longer there.
    pub fn expire(&mut self, key: QueueKey) -> Option<T> {
        let item = self.queue.remove(key)?;
        self.totals.expired += 1;
        self.gauge.observe(self.queue.len());
        Some(item)
    }

    /// Returns the number of waiting requests.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns `true` if no request waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Returns the bytes of the waiting requests.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.queue.bytes()
    }

    /// Returns the number of waiting requests of a priority.
    #[must_use]
    pub fn waiting(&self, priority: MessagePriority) -> usize {
        self.queue.waiting(priority)
    }

    /// Returns the most urgent priority that waits.
    #[must_use]
    pub fn most_urgent(&self) -> Option<MessagePriority> {
        self.queue.most_urgent()
    }

    /// Returns the fill of the queue.
    #[must_use]
    pub fn state(&self) -> QueueState {
        self.gauge.state()
    }

    /// Returns the totals.
    #[must_use]
    pub fn totals(&self) -> PoolQueueTotals {
        self.totals
    }

    /// Returns the mean time that a request is in flight, once one has ended.
    #[must_use]
    pub fn service(&self) -> Option<Duration> {
        self.estimate.service()
    }
}

/// The band of a priority: 0 for High, which Critical would have if it waited.
fn band(priority: MessagePriority) -> usize {
    usize::from(priority as u8).saturating_sub(1)
}

// === impl NotQueued ===

impl<T> fmt::Debug for NotQueued<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("NotQueued");
        out.field("reason", &self.reason).field("position", &self.position);
        out.field("wait", &self.wait).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for NotQueued<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.reason, self.wait) {
            (NotQueuedReason::Disabled, _) => f.write_str("requests may not wait"),
            (NotQueuedReason::Full, _) => {
                write!(f, "the queue is full: it would be at position {}", self.position)
            }
            (NotQueuedReason::Wait, Some(wait)) => {
                write!(f, "it would wait {wait:?} at position {}", self.position)
            }
            (NotQueuedReason::Wait, None) => f.write_str("its deadline has passed"),
        }
    }
}

impl<T> std::error::Error for NotQueued<T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::FlowId;
    use MessagePriority::{High, Normal};

    /// A queue before 8 slots of 50 ms, whose service time is known.
    fn queue() -> PoolQueue<u32> {
        let mut queue = PoolQueue::new(PoolQueueConfig::default());
        queue.observe(Duration::ZERO, 0, 0, [0; 3]);
        queue.observe(Duration::from_secs(1), 160, 160 * 50_000, [0, 160, 0]);
        queue
    }

    const NOW: Duration = Duration::from_secs(1);

    #[test]
    fn a_burst_waits_and_a_flood_is_turned_away_at_the_target() {
        let mut queue = queue();
        let arrive = |queue: &mut PoolQueue<u32>, item| {
            queue.arrive(Arrival::new(Normal, item), 8, NOW).map(|_| ())
        };
        let accepted = (0..1000).filter(|item| arrive(&mut queue, *item).is_ok()).count();
        // Four services of 50 ms at 160 a second.
        assert_eq!(accepted, 32);
        let refused = arrive(&mut queue, 1000).expect_err("a flood");
        assert_eq!((refused.reason, refused.position), (NotQueuedReason::Wait, 33));
        assert!(refused.wait > Some(Duration::from_millis(200)), "{refused}");
        let urgent = queue.arrive(Arrival::new(High, 1), 8, NOW);
        assert!(urgent.is_ok(), "High does not wait behind Normal");
        let totals = queue.totals();
        assert_eq!((totals.queued, totals.refused_wait), (33, 969));
    }

    /// A pool of 8 slots of 50 ms that gets this many requests of a priority in each service of a slot.
    fn flood(queue: &mut PoolQueue<u32>, from: Duration, services: u32, arrivals: u32, low: bool) {
        let mut sent = 160 + from.saturating_sub(NOW).as_millis() as u64 * 160 / 1_000;
        for tick in 0..8 * services {
            let now = from + Duration::from_micros(6_250) * tick;
            let (priority, sent_by) =
                if low { (MessagePriority::Low, [0, 0, sent]) } else { (Normal, [0, sent, 0]) };
            queue.observe(now, sent, sent * 50_000, sent_by);
            for item in 0..arrivals / 8 {
                let _ = queue.arrive(Arrival::new(priority, item), 8, now);
            }
            sent += u64::from(queue.next(now, |_| Offer::Taken(())).is_some());
        }
    }

    #[test]
    fn a_queue_that_does_not_empty_is_shortened_and_a_burst_is_not() {
        let config = PoolQueueConfig {
            target: WaitTarget { min: Duration::ZERO, ..WaitTarget::default() },
            ..PoolQueueConfig::default()
        };
        let mut queue = PoolQueue::new(config);
        queue.observe(Duration::ZERO, 0, 0, [0; 3]);
        queue.observe(NOW, 160, 160 * 50_000, [0, 0, 160]);
        flood(&mut queue, NOW, 3, 24, true);
        assert!((24..=33).contains(&queue.len()), "four services for a burst: {}", queue.len());
        flood(&mut queue, NOW + Duration::from_millis(150), 37, 24, true);
        assert!((6..=9).contains(&queue.len()), "one for a standing queue: {}", queue.len());
        // What waits below does not shorten the wait of a burst above it.
        let now = NOW + Duration::from_secs(2);
        let accepted =
            (0..100).filter(|item| queue.arrive(Arrival::new(High, *item), 8, now).is_ok());
        assert_eq!(accepted.count(), 32);
    }

    #[test]
    fn a_band_forgets_its_refusals_when_another_arrives_at_an_empty_queue() {
        let mut queue = queue();
        flood(&mut queue, NOW, 40, 24, false);
        while queue.next(NOW, |_| Offer::Taken(())).is_some() {}
        let now = NOW + Duration::from_secs(3);
        assert!(queue.arrive(Arrival::new(High, 0), 8, now).is_ok());
        let later = now + Duration::from_millis(10);
        let accept = |item| queue.arrive(Arrival::new(Normal, item), 8, later).is_ok();
        assert!((0..100).map(accept).filter(|is| *is).count() >= 24);
    }

    #[test]
    fn a_queue_that_was_empty_takes_a_whole_burst_again() {
        let mut queue = queue();
        flood(&mut queue, NOW, 40, 24, false);
        while queue.next(NOW, |_| Offer::Taken(())).is_some() {}
        let now = NOW + Duration::from_secs(3);
        let accept = |item| queue.arrive(Arrival::new(Normal, item), 8, now).is_ok();
        assert!((0..100).map(accept).filter(|is| *is).count() >= 30);
    }

    /// A flow that sends less than its share has hardly a request waiting, and takes half of all slots.
    #[test]
    fn the_wait_of_a_long_flow_is_judged_by_the_turns_that_it_gets() {
        let mut queue = queue();
        let mut sent = 160;
        for tick in 0..400_u32 {
            let now = NOW + Duration::from_micros(12_500) * tick;
            queue.observe(now, sent, sent * 50_000, [0, sent, 0]);
            let of = |flow| Arrival { flow: FlowId(flow), ..Arrival::new(Normal, tick) };
            assert!(queue.arrive(of(2), 8, now).is_ok(), "the short flow may wait");
            for _ in 0..5 {
                let _ = queue.arrive(of(1), 8, now);
            }
            for _ in 0..2 {
                queue.next(now, |_| Offer::Taken(()));
                sent += 1;
            }
        }
        // 100 ms at 80 a second, because they wait all the time; 16 would wait for 200 ms.
        assert!((5..=9).contains(&queue.len()), "{}", queue.len());
    }

    #[test]
    fn streams_that_waited_for_longer_than_the_target_are_not_served() {
        let mut queue = PoolQueue::new(PoolQueueConfig::default());
        // Responses begin after 50 ms; none has ended yet.
        queue.observe_first_bytes(8, 8 * 50_000);
        for item in 0..30_u32 {
            let now = Duration::from_millis(40 * u64::from(item));
            queue.arrive(Arrival::new(Normal, item), 8, now).expect("nothing is known of its wait");
        }
        let now = Duration::from_millis(1_200);
        let mut left = Vec::new();
        while let Some(next) = queue.next(now, |_| Offer::Taken(())) {
            left.extend(matches!(next, Next::Served { .. }).then_some(()));
        }
        // Those of the last 200 ms.
        assert_eq!((left.len(), queue.totals().expired), (5, 25));
    }

    #[test]
    fn a_deadline_shortens_the_wait_that_is_allowed() {
        let mut queue = queue();
        for item in 0..16 {
            queue.arrive(Arrival::new(Normal, item), 8, NOW).expect("short of the target");
        }
        let hurried =
            Arrival { until: NOW + Duration::from_millis(50), ..Arrival::new(Normal, 99) };
        let refused = queue.arrive(hurried, 8, NOW).expect_err("100 ms of work are ahead");
        assert_eq!(refused.reason, NotQueuedReason::Wait);
        let other = Arrival { flow: FlowId(7), ..Arrival::new(Normal, 99) };
        let hurried = Arrival { until: NOW + Duration::from_millis(50), ..other };
        assert!(queue.arrive(hurried, 8, NOW).is_ok(), "a flow of its own has less ahead");
        let again = Arrival {
            until: NOW + Duration::from_millis(50),
            had_turn: true,
            ..Arrival::new(Normal, 99)
        };
        assert!(queue.arrive(again, 8, NOW).is_ok(), "it had its turn");
        let late = Arrival { until: NOW, ..Arrival::new(High, 100) };
        assert!(queue.arrive(late, 8, NOW).is_err());
    }

    #[test]
    fn a_queue_of_size_0_refuses_and_every_request_is_counted_once() {
        let config = PoolQueueConfig { size: 0, ..PoolQueueConfig::default() };
        let mut none = PoolQueue::new(config);
        let refused = none.arrive(Arrival::new(High, 1), 8, NOW).expect_err("nothing may wait");
        assert_eq!(refused.reason, NotQueuedReason::Disabled);

        let mut queue = queue();
        let key = |queue: &mut PoolQueue<u32>, until| {
            let arrival = Arrival { until, ..Arrival::new(Normal, 1) };
            queue.arrive(arrival, 8, NOW).expect("room").key
        };
        let left = key(&mut queue, Duration::MAX);
        let expired = key(&mut queue, Duration::MAX);
        key(&mut queue, NOW + Duration::from_secs(1));
        key(&mut queue, Duration::MAX);
        assert!(queue.leave(left).is_some() && queue.leave(left).is_none());
        assert!(queue.expire(expired).is_some());
        let later = NOW + Duration::from_secs(2);
        assert!(matches!(queue.next(later, |_| Offer::Taken(())), Some(Next::Expired { .. })));
        assert!(matches!(queue.next(later, |_| Offer::Taken(())), Some(Next::Served { .. })));
        let expected =
            PoolQueueTotals { queued: 4, served: 1, expired: 2, left: 1, ..Default::default() };
        assert_eq!((queue.totals(), queue.len()), (expected, 0));
    }
}
