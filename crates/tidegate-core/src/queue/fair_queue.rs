use super::band::Band;
use super::bounds::QueueBounds;
use super::entry::{Arrival, Entry, FlowId, QueueKey};
use crate::admission::MessagePriority;
use std::fmt;
use std::time::Duration;

/// High, Normal and Low.
const BANDS: usize = 3;

/// Requests that wait for a pool of upstreams, in the order of their service. See the [module](super).
///
/// Every operation takes at most logarithmic time in the number of waiting requests, for each request that is
/// offered a slot.
#[derive(Debug)]
pub struct FairQueue<T> {
    bands: [Band<T>; BANDS],
    bounds: QueueBounds,
    next_sequence: u64,
    /// Requests served since one of a lower band was served before a higher one.
    served_in_order: u32,
}

/// A request that waits now.
#[derive(Debug, PartialEq, Eq)]
pub struct Pushed<T> {
    /// Its position, to remove it by.
    pub key: QueueKey,
    /// The requests that gave way to it, the least urgent first.
    pub displaced: Vec<T>,
}

/// The queue is full for this request. Nothing has changed.
#[derive(Clone, PartialEq, Eq)]
pub struct Full<T> {
    /// The request.
    pub item: T,
    /// Requests that wait.
    pub waiting: usize,
}

/// The caller's answer to a request that could be served next.
#[derive(Debug)]
pub enum Offer<S> {
    /// The request is served with this slot.
    Taken(S),
    /// There is no slot for this request; one for another request may be free.
    NotForThis,
    /// There is no slot for any request.
    NoSlot,
}

/// A request that left the queue.
#[derive(Debug)]
pub enum Next<T, S> {
    /// A request that is served.
    Served {
        /// The request.
        item: T,
        /// Its slot.
        slot: S,
        /// The time that it waited.
        waited: Duration,
    },
    /// A request that has waited for as long as it may. No slot was used.
    Expired {
        /// The request.
        item: T,
    },
}

// === impl FairQueue ===

impl<T> FairQueue<T> {
    /// Creates an empty queue.
    #[must_use]
    pub fn new(bounds: QueueBounds) -> Self {
        let bands = std::array::from_fn(|_| Band::new());
        Self { bands, bounds, next_sequence: 0, served_in_order: 0 }
    }

    /// Returns the bounds.
    #[must_use]
    pub fn bounds(&self) -> QueueBounds {
        self.bounds
    }

    /// Replaces the bounds. Requests that already wait stay, also beyond a lower bound.
    pub fn set_bounds(&mut self, bounds: QueueBounds) {
        self.bounds = bounds;
    }

    /// Returns the number of waiting requests.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bands.iter().map(Band::len).sum()
    }

    /// Returns `true` if no request waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the bytes of the waiting requests.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bands.iter().map(Band::bytes).sum()
    }

    /// Returns the number of waiting requests of a priority.
    #[must_use]
    pub fn waiting(&self, priority: MessagePriority) -> usize {
        self.bands[band_of(priority)].len()
    }

    /// Returns the most urgent priority that waits.
    #[must_use]
    pub fn most_urgent(&self) -> Option<MessagePriority> {
        const PRIORITIES: [MessagePriority; BANDS] =
            [MessagePriority::High, MessagePriority::Normal, MessagePriority::Low];
        PRIORITIES.into_iter().find(|priority| self.waiting(*priority) > 0)
    }

    /// Returns the requests that are served before one that arrives now: those of higher bands, and those of its
    /// own.
    #[must_use]
    pub fn ahead_of(&self, priority: MessagePriority, flow: FlowId, weight: u32) -> (usize, usize) {
        let band = band_of(priority);
        let higher = self.bands[..band].iter().map(Band::len).sum();
        (higher, self.bands[band].ahead_of(flow, weight))
    }

    /// Returns the wait of a request that arrives now behind others of its flow, by the measured rate of the flow.
    pub(super) fn flow_wait(
        &self,
        priority: MessagePriority,
        flow: FlowId,
        now: Duration,
    ) -> Option<Duration> {
        self.bands[band_of(priority)].flow_wait(flow, now)
    }

    /// Adds a request. At the bound it takes the place of less urgent ones, the least urgent and newest first, or
    /// of the newest one of the flow of its own band with the longest backlog.
    ///
    /// # Errors
    ///
    /// When the queue is full of requests that are at least as urgent. Nothing has changed.
    pub fn push(&mut self, arrival: Arrival<T>, now: Duration) -> Result<Pushed<T>, Full<T>> {
        let band = band_of(arrival.priority);
        let (cost, weight) = (u64::from(arrival.cost.max(1)), arrival.weight.max(1));
        let Some(displaced) = self.make_room(band, arrival.flow, weight, cost, arrival.bytes)
        else {
            return Err(Full { item: arrival.item, waiting: self.len() });
        };
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let Arrival { flow, bytes, until, item, .. } = arrival;
        let entry = Entry { cost, bytes, since: now, until, item };
        self.bands[band].push(flow, weight, sequence, entry);
        Ok(Pushed { key: QueueKey { band, flow, sequence }, displaced })
    }

    /// Offers slots to waiting requests in the order of service until one takes a slot or has expired. Returns
    /// `None` when the caller has no slot, or none for the requests whose turn it is.
    pub fn next<S>(
        &mut self,
        now: Duration,
        offer: impl FnMut(&T) -> Offer<S>,
    ) -> Option<Next<T, S>> {
        self.next_within(Duration::MAX, now, offer)
    }

    /// Does the same, and lets requests expire that have waited for longer than `wait_max`.
    pub(super) fn next_within<S>(
        &mut self,
        wait_max: Duration,
        now: Duration,
        mut offer: impl FnMut(&T) -> Offer<S>,
    ) -> Option<Next<T, S>> {
        let guarded = self.guarded_band();
        let order = guarded.into_iter().chain(0..BANDS);
        for band in order {
            let mut after = None;
            while let Some((turn, flow, sequence)) = self.bands[band].candidate(after) {
                let entry = self.bands[band].item(flow, sequence)?;
                if entry.until <= now || now.saturating_sub(entry.since) > wait_max {
                    let entry = self.bands[band].remove(flow, sequence)?;
                    return Some(Next::Expired { item: entry.item });
                }
                match offer(&entry.item) {
                    Offer::Taken(slot) => {
                        self.count_served(band);
                        let Entry { since, item, .. } =
                            self.bands[band].serve(flow, sequence, now)?;
                        let waited = now.saturating_sub(since);
                        return Some(Next::Served { item, slot, waited });
                    }
                    Offer::NotForThis => after = Some((turn, sequence)),
                    Offer::NoSlot => return None,
                }
            }
        }
        None
    }

    /// Removes a request that stopped waiting. Returns `None` if it already left.
    pub fn remove(&mut self, key: QueueKey) -> Option<T> {
        self.bands[key.band].remove(key.flow, key.sequence).map(|entry| entry.item)
    }

    /// Displaces what must go for a request of this size. Returns `None`, having changed nothing, if that is not
    /// enough.
    fn make_room(
        &mut self,
        band: usize,
        flow: FlowId,
        weight: u32,
        cost: u64,
        bytes: u64,
    ) -> Option<Vec<T>> {
        let fits = |count: usize, held: u64| {
            count < self.bounds.count && held.saturating_add(bytes) <= self.bounds.bytes
        };
        let (count, held) = (self.len(), self.bytes());
        if fits(count, held) {
            return Some(Vec::new());
        }
        let own = &self.bands[band];
        let mut lower = (0, 0);
        for less_urgent in &self.bands[band + 1..] {
            lower = (lower.0 + less_urgent.len(), lower.1 + less_urgent.bytes());
        }
        let without_lower = (count - lower.0, held - lower.1);
        let mut from_own = false;
        if lower.0 == 0 || !fits(without_lower.0, without_lower.1) {
            let backlog = own.backlog_with(flow, weight, cost);
            from_own = own.longest().is_some_and(|(longest, of)| of != flow && longest > backlog);
            let (count, held) = (without_lower.0, without_lower.1);
            if !from_own || !fits(count.checked_sub(1)?, held - own.newest_bytes()) {
                return None;
            }
        }
        let mut displaced = Vec::new();
        for lowest in (band + 1..BANDS).rev() {
            while !self.fits(bytes)
                && let Some(entry) = self.bands[lowest].pop_newest()
            {
                displaced.push(entry.item);
            }
        }
        if from_own {
            displaced.extend(self.bands[band].pop_newest().map(|entry| entry.item));
        }
        Some(displaced)
    }

    fn fits(&self, bytes: u64) -> bool {
        self.len() < self.bounds.count && self.bytes().saturating_add(bytes) <= self.bounds.bytes
    }

    /// The band that is served out of order now, by the guard against starvation.
    fn guarded_band(&self) -> Option<usize> {
        let guard = self.bounds.starvation_guard;
        if guard == 0 || self.served_in_order + 1 < guard {
            return None;
        }
        let waiting = |band: &usize| self.bands[*band].len() > 0;
        let first = (0..BANDS).find(waiting)?;
        (first + 1..BANDS).filter(waiting).min_by_key(|band| self.bands[*band].oldest())
    }

    fn count_served(&mut self, band: usize) {
        let higher_waits = self.bands[..band].iter().any(|higher| higher.len() > 0);
        let lower_waits = self.bands[band + 1..].iter().any(|lower| lower.len() > 0);
        self.served_in_order = match (higher_waits, lower_waits) {
            (true, _) | (false, false) => 0,
            (false, true) => self.served_in_order.saturating_add(1),
        };
    }
}

fn band_of(priority: MessagePriority) -> usize {
    match priority {
        MessagePriority::Critical | MessagePriority::High => 0,
        MessagePriority::Normal => 1,
        MessagePriority::Low => 2,
    }
}

// === impl Full ===

impl<T> fmt::Debug for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Full").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}

impl<T> fmt::Display for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the queue is full: {} requests wait", self.waiting)
    }
}

impl<T> std::error::Error for Full<T> {}

#[cfg(test)]
mod tests {
    use super::*;
    use MessagePriority::{High, Low, Normal};

    const NOW: Duration = Duration::from_secs(1);

    fn queue(count: usize) -> FairQueue<&'static str> {
        FairQueue::new(QueueBounds { count, ..QueueBounds::default() })
    }

    fn of(flow: u64, priority: MessagePriority, item: &'static str) -> Arrival<&'static str> {
        Arrival { flow: FlowId(flow), ..Arrival::new(priority, item) }
    }

    fn served<T>(queue: &mut FairQueue<T>) -> Option<T> {
        match queue.next(NOW, |_| Offer::Taken(())) {
            Some(Next::Served { item, .. }) => Some(item),
            Some(Next::Expired { .. }) | None => None,
        }
    }

    #[test]
    fn a_more_urgent_request_is_served_first_whenever_it_came() {
        let mut queue = queue(10);
        for arrival in [of(1, Low, "l"), of(1, Normal, "n1"), of(1, High, "h"), of(1, Normal, "n2")]
        {
            queue.push(arrival, NOW).expect("room");
        }
        assert_eq!(queue.most_urgent(), Some(High));
        let order: Vec<_> = std::iter::from_fn(|| served(&mut queue)).collect();
        assert_eq!(order, ["h", "n1", "n2", "l"]);
        assert!(queue.is_empty() && queue.most_urgent().is_none());
    }

    #[test]
    fn flows_share_by_cost_and_weight_and_not_by_requests() {
        let mut queue = FairQueue::new(QueueBounds { count: 100_000, ..QueueBounds::default() });
        let mut push = |flow: u64, weight: u32, cost: u32, times: usize| {
            for _ in 0..times {
                let arrival = Arrival {
                    flow: FlowId(flow),
                    weight,
                    cost,
                    ..Arrival::new(Normal, (flow, cost))
                };
                queue.push(arrival, NOW).expect("room");
            }
        };
        // Ten times the requests, and ten times the cost of each: the same share. Twice the weight: twice the
        // share.
        push(1, 1, 100, 1_000);
        push(2, 1, 10, 10_000);
        push(3, 2, 50, 4_000);
        let mut cost = [0_u64; 4];
        for _ in 0..4_000 {
            let (flow, spent) = served(&mut queue).expect("all three wait");
            cost[flow as usize] += u64::from(spent);
        }
        let [_, one, two, three] = cost;
        assert!(one.abs_diff(two) <= 200, "{cost:?}");
        assert!(three.abs_diff(2 * one) <= 300, "{cost:?}");
    }

    #[test]
    fn at_the_bound_the_newest_of_the_lowest_band_gives_way() {
        let mut queue = queue(3);
        for arrival in [of(1, Low, "l1"), of(1, Low, "l2"), of(1, Normal, "n")] {
            queue.push(arrival, NOW).expect("room");
        }
        let pushed = queue.push(of(1, High, "h"), NOW).expect("Low gives way");
        assert_eq!(pushed.displaced, ["l2"]);
        let full = queue.push(of(1, Low, "l3"), NOW).expect_err("nobody gives way to Low");
        assert_eq!((full.item, full.waiting), ("l3", 3));
        assert_eq!(queue.push(of(1, Normal, "n2"), NOW).expect("room").displaced, ["l1"]);
        assert!(queue.push(of(1, Normal, "n3"), NOW).is_err(), "its own flow has the longest");
        assert_eq!(queue.len(), 3);
    }

    #[test]
    fn at_the_bound_a_flood_gives_way_to_another_flow_of_its_band_and_not_the_reverse() {
        let mut queue = queue(4);
        for name in ["a1", "a2", "a3", "a4"] {
            queue.push(of(1, Normal, name), NOW).expect("room");
        }
        assert_eq!(queue.push(of(2, Normal, "b1"), NOW).expect("room").displaced, ["a4"]);
        assert_eq!(queue.push(of(2, Normal, "b2"), NOW).expect("room").displaced, ["a3"]);
        assert!(queue.push(of(2, Normal, "b3"), NOW).is_err(), "both have as much");
        assert!(queue.push(of(1, Normal, "a5"), NOW).is_err());
    }

    #[test]
    fn bytes_are_bounded_too_and_a_request_that_never_fits_displaces_nobody() {
        let bounds = QueueBounds { count: 10, bytes: 100, starvation_guard: 0 };
        let mut queue = FairQueue::new(bounds);
        for item in ["l1", "l2"] {
            let arrival = Arrival { bytes: 50, ..Arrival::new(Low, item) };
            queue.push(arrival, NOW).expect("room");
        }
        let huge = Arrival { bytes: 101, ..Arrival::new(High, "huge") };
        assert_eq!(queue.push(huge, NOW).expect_err("over the bound").item, "huge");
        assert_eq!((queue.len(), queue.bytes()), (2, 100));
        let large = Arrival { bytes: 60, ..Arrival::new(High, "large") };
        assert_eq!(queue.push(large, NOW).expect("Low gives way").displaced, ["l2", "l1"]);
        assert_eq!((queue.len(), queue.bytes()), (1, 60));
    }

    #[test]
    fn a_request_that_left_is_gone_at_once_and_one_that_expired_uses_no_slot() {
        let mut queue = queue(2);
        let first = queue.push(of(1, Normal, "left"), NOW).expect("room").key;
        let late = Arrival { until: NOW, ..of(1, Normal, "late") };
        queue.push(late, Duration::ZERO).expect("room");
        assert_eq!(queue.remove(first), Some("left"));
        assert_eq!(queue.remove(first), None);
        assert!(queue.push(of(2, Normal, "new"), NOW).is_ok(), "its position is free");
        let mut offered = 0;
        let next = queue.next(NOW, |_| {
            offered += 1;
            Offer::Taken(())
        });
        assert!(matches!(next, Some(Next::Expired { item: "late" })));
        assert_eq!((offered, queue.len()), (0, 1));
    }

    #[test]
    fn a_request_without_a_slot_of_its_own_holds_up_no_other_flow() {
        let mut queue = queue(4);
        for arrival in [of(1, High, "picky"), of(2, High, "easy"), of(3, Low, "low")] {
            queue.push(arrival, NOW).expect("room");
        }
        let mut seen = Vec::new();
        let next = queue.next(NOW, |item| {
            seen.push(*item);
            if *item == "picky" { Offer::NotForThis } else { Offer::Taken(7) }
        });
        assert!(matches!(next, Some(Next::Served { item: "easy", slot: 7, .. })));
        assert_eq!(seen, ["picky", "easy"]);
        let none = queue.next(NOW, |_| Offer::<()>::NoSlot);
        assert!(none.is_none(), "without a slot nobody lower is asked");
        assert_eq!(queue.len(), 2);
    }

    #[test]
    fn a_request_without_a_slot_of_its_own_hides_none_behind_it_in_its_flow() {
        let mut queue = queue(4);
        let costly = Arrival { cost: 9, ..of(1, High, "costly") };
        for arrival in [of(1, High, "picky"), costly, of(1, High, "last"), of(2, Low, "low")] {
            queue.push(arrival, NOW).expect("room");
        }
        let offer = |item: &&str| match *item {
            "picky" => Offer::NotForThis,
            _ => Offer::Taken(()),
        };
        let mut served = Vec::new();
        while let Some(Next::Served { item, .. }) = queue.next(NOW, offer) {
            served.push(item);
        }
        assert_eq!(served, ["costly", "last", "low"]);
        assert_eq!(queue.len(), 1);
    }

    #[test]
    fn the_guard_serves_a_lower_band_once_in_so_many() {
        let bounds = QueueBounds { starvation_guard: 4, ..QueueBounds::default() };
        let mut queue = FairQueue::new(bounds);
        for _ in 0..20 {
            queue.push(Arrival::new(High, 'h'), NOW).expect("room");
            queue.push(Arrival::new(Low, 'l'), NOW).expect("room");
        }
        let order: String = (0..12).filter_map(|_| served(&mut queue)).collect();
        assert_eq!(order, "hhhlhhhlhhhl");
    }

    #[test]
    fn the_requests_ahead_are_those_that_are_served_first() {
        let mut queue = queue(100);
        for _ in 0..10 {
            queue.push(of(1, Normal, "flood"), NOW).expect("room");
        }
        queue.push(of(9, High, "urgent"), NOW).expect("room");
        assert_eq!(queue.ahead_of(Normal, FlowId(1), 1), (1, 10));
        assert_eq!(queue.ahead_of(Normal, FlowId(2), 1), (1, 1), "a new flow is next but one");
        assert_eq!(queue.ahead_of(High, FlowId(9), 1), (0, 1));
        assert_eq!(queue.ahead_of(Low, FlowId(1), 1), (11, 0));
    }
}
