//! The batches of one client that are not over: which wait, which are under way, which to send again.
//!
//! # Implementation
//!
//! Batches have places, from 1 on, in the order in which they were cut. What goes over the wire is the place plus
//! a base, because where the numbers begin may only be known once the server has been reached.

use bytes::Bytes;
use std::collections::VecDeque;
use std::time::Duration;

/// The batches that were cut and are not over, in order.
#[derive(Debug, Default)]
pub(super) struct InFlightBatches {
    /// Batches before the first that is held: all of them are over.
    over: u64,
    held: VecDeque<Option<Held>>,
    base: u64,
    in_flight: usize,
    records: u64,
    bytes: u64,
}

/// A batch that is not over.
#[derive(Debug)]
pub(super) struct Held {
    /// As it goes over the wire, each time the same.
    pub frame: Bytes,
    pub records: u32,
    /// When its oldest record was taken.
    pub since: Duration,
    /// Number of times that it was sent.
    pub sends: u32,
    way: Way,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// To be sent.
    Waits,
    /// To be sent, but not before this time.
    WaitsUntil(Duration),
    /// Sent over the connection that there is, and not answered.
    Sent,
}

// === impl InFlightBatches ===

impl InFlightBatches {
    /// Adds a batch that was cut. Its number is that of [`next_seq`](Self::next_seq) before.
    pub(super) fn add(&mut self, frame: Bytes, records: u32, since: Duration) {
        self.records += u64::from(records);
        self.bytes += frame.len() as u64;
        self.held.push_back(Some(Held { frame, records, since, sends: 0, way: Way::Waits }));
    }

    /// Adds a batch that the server has already: it is over.
    pub(super) fn add_over(&mut self) {
        self.held.push_back(None);
        self.advance();
    }

    /// The number of the batch that is cut next.
    pub(super) fn next_seq(&self) -> u64 {
        self.base + self.cut() + 1
    }

    /// Number of batches cut so far.
    pub(super) fn cut(&self) -> u64 {
        self.over + self.held.len() as u64
    }

    /// Number of batches, from the first on, that have ended.
    pub(super) fn over(&self) -> u64 {
        self.over
    }

    /// No batch up to this number will be sent again.
    pub(super) fn settled(&self) -> u64 {
        self.base + self.over
    }

    /// Batches that are held, and those between them.
    pub(super) fn batches(&self) -> usize {
        self.held.len()
    }

    pub(super) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Records in batches that are not over.
    pub(super) fn records(&self) -> u64 {
        self.records
    }

    /// Bytes of batches that are not over.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Batches that may be sent now: records, bytes, and the time since which the oldest waits.
    pub(super) fn ready(&self, now: Duration) -> Option<(u64, u64, Duration)> {
        let ready = self.held.iter().flatten().filter(|held| held.may_go(now));
        ready.fold(None, |all, held| {
            let (records, bytes, since) = all.unwrap_or((0, 0, held.since));
            let records = records + u64::from(held.records);
            Some((records, bytes + held.frame.len() as u64, since.min(held.since)))
        })
    }

    /// The first batch that may be sent now; from now on it is under way.
    pub(super) fn send_next(&mut self, now: Duration) -> Option<&Held> {
        let held = self.held.iter_mut().flatten().find(|held| held.may_go(now))?;
        held.way = Way::Sent;
        held.sends += 1;
        self.in_flight += 1;
        Some(held)
    }

    /// When a batch that was put off may next be sent.
    pub(super) fn next_retry(&self, now: Duration) -> Option<Duration> {
        let later = self.held.iter().flatten().filter_map(|held| match held.way {
            Way::WaitsUntil(time) if time > now => Some(time),
            _ => None,
        });
        later.min()
    }

    /// True if no batch of this number was ever sent, so that an answer to it is an error.
    pub(super) fn was_never_sent(&self, seq: u64) -> bool {
        let place = seq.checked_sub(self.base + self.over + 1);
        let Some(place) = place.and_then(|place| usize::try_from(place).ok()) else { return false };
        self.held.get(place).is_none_or(|slot| slot.as_ref().is_some_and(|held| held.sends == 0))
    }

    /// A batch is over. `None` when it was before, or never was.
    pub(super) fn finish(&mut self, seq: u64) -> Option<Held> {
        let held = self.slot(seq)?.take()?;
        self.forget(&held);
        self.advance();
        Some(held)
    }

    /// A batch was refused for now. Tells how many records it has.
    pub(super) fn put_off(&mut self, seq: u64, until: Duration) -> Option<u32> {
        let held = self.slot(seq)?.as_mut()?;
        let (records, was) = (held.records, held.way);
        held.way = Way::WaitsUntil(until);
        self.in_flight -= usize::from(was == Way::Sent);
        Some(records)
    }

    /// The connection is gone: all that was under way is to be sent again.
    pub(super) fn disconnected(&mut self) {
        for held in self.held.iter_mut().flatten() {
            if held.way == Way::Sent {
                held.way = Way::Waits;
            }
        }
        self.in_flight = 0;
    }

    /// Ends batches that were never sent, and gives them out with their numbers.
    pub(super) fn drop_unsent(&mut self) -> Vec<(u64, Held)> {
        let base = self.base + self.over + 1;
        let mut dropped = Vec::new();
        for (place, slot) in self.held.iter_mut().enumerate() {
            if let Some(held) = slot.take_if(|held| held.sends == 0) {
                dropped.push((base + place as u64, held));
            }
        }
        dropped.iter().for_each(|(_, held)| self.forget(held));
        self.advance();
        dropped
    }

    /// All that is not over, with its numbers. To be called at the end only: their numbers are free again.
    pub(super) fn drain(&mut self) -> Vec<(u64, Held)> {
        let first = self.base + self.over + 1;
        (self.records, self.bytes, self.in_flight) = (0, 0, 0);
        let slots = std::mem::take(&mut self.held).into_iter().enumerate();
        slots.filter_map(|(place, held)| Some((first + place as u64, held?))).collect()
    }

    /// Numbers begin behind `base` from now on; `renumber` makes the frames that were cut before again. To be
    /// called before any was sent.
    pub(super) fn rebase(
        &mut self,
        base: u64,
        mut renumber: impl FnMut(&Bytes, u64, u64) -> Bytes,
    ) {
        self.base = base;
        let (first, settled) = (base + self.over + 1, self.settled());
        let mut bytes = 0;
        for (place, held) in self.held.iter_mut().enumerate() {
            if let Some(held) = held {
                held.frame = renumber(&held.frame, first + place as u64, settled);
                bytes += held.frame.len() as u64;
            }
        }
        self.bytes = bytes;
    }

    /// The numbers of what is not over.
    pub(super) fn seqs(&self) -> impl Iterator<Item = u64> {
        let first = self.base + self.over + 1;
        let held = self.held.iter().enumerate().filter(|(_, held)| held.is_some());
        held.map(move |(place, _)| first + place as u64)
    }

    fn slot(&mut self, seq: u64) -> Option<&mut Option<Held>> {
        let place = seq.checked_sub(self.base + self.over + 1)?;
        self.held.get_mut(usize::try_from(place).ok()?)
    }

    fn forget(&mut self, held: &Held) {
        self.records -= u64::from(held.records);
        self.bytes -= held.frame.len() as u64;
        self.in_flight -= usize::from(held.way == Way::Sent);
    }

    fn advance(&mut self) {
        while matches!(self.held.front(), Some(None)) {
            self.held.pop_front();
            self.over += 1;
        }
    }
}

// === impl Held ===

impl Held {
    fn may_go(&self, now: Duration) -> bool {
        match self.way {
            Way::Waits => true,
            Way::WaitsUntil(time) => time <= now,
            Way::Sent => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn in_flight(batches: u64) -> InFlightBatches {
        let mut in_flight = InFlightBatches::default();
        (1..=batches).for_each(|n| in_flight.add(vec![0; 10 * n as usize].into(), n as u32, ms(n)));
        in_flight
    }

    #[test]
    fn batches_are_sent_in_order_and_settled_from_the_first_on() {
        let mut in_flight = in_flight(3);
        assert_eq!(in_flight.ready(ms(0)), Some((6, 60, ms(1))));
        let sent: Vec<_> =
            std::iter::from_fn(|| in_flight.send_next(ms(0)).map(|held| held.records)).collect();
        assert_eq!((sent, in_flight.in_flight(), in_flight.next_seq()), (vec![1, 2, 3], 3, 4));
        assert!(in_flight.finish(2).is_some() && in_flight.finish(2).is_none());
        assert_eq!((in_flight.settled(), in_flight.records(), in_flight.bytes()), (0, 4, 40));
        assert!(in_flight.finish(1).is_some());
        assert_eq!((in_flight.settled(), in_flight.batches()), (2, 1));
    }

    #[test]
    fn what_was_under_way_is_sent_again_and_what_was_put_off_waits() {
        let mut in_flight = in_flight(2);
        in_flight.send_next(ms(0));
        in_flight.send_next(ms(0));
        assert_eq!(in_flight.put_off(1, ms(50)), Some(1));
        assert_eq!((in_flight.next_retry(ms(0)), in_flight.ready(ms(0))), (Some(ms(50)), None));
        in_flight.disconnected();
        assert_eq!(in_flight.send_next(ms(0)).map(|held| (held.records, held.sends)), Some((2, 2)));
        assert_eq!(
            in_flight.send_next(ms(50)).map(|held| (held.records, held.sends)),
            Some((1, 2))
        );
    }

    #[test]
    fn an_answer_to_what_was_never_sent_is_told() {
        let mut in_flight = in_flight(3);
        in_flight.send_next(ms(0));
        in_flight.send_next(ms(0));
        in_flight.finish(1);
        let never: Vec<_> = (0..=5).filter(|seq| in_flight.was_never_sent(*seq)).collect();
        assert_eq!(never, [3, 4, 5]);
    }

    #[test]
    fn numbers_can_begin_elsewhere_before_anything_is_sent() {
        let mut in_flight = in_flight(2);
        in_flight.rebase(100, |_, seq, settled| Bytes::from(format!("{seq} {settled}")));
        let sent = in_flight.send_next(ms(0)).map(|held| held.frame.clone());
        assert_eq!(sent, Some(Bytes::from("101 100")));
        assert_eq!((in_flight.next_seq(), in_flight.settled(), in_flight.bytes()), (103, 100, 14));
        assert!(in_flight.finish(1).is_none() && in_flight.finish(101).is_some());
        assert_eq!(in_flight.drop_unsent().iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), [102]);
        assert_eq!((in_flight.settled(), in_flight.records(), in_flight.bytes()), (102, 0, 0));
    }

    proptest! {
        /// Sums are those of what is held, whatever happens, and nothing is over before it was finished.
        #[test]
        fn the_sums_are_those_of_what_is_held(
            steps in prop::collection::vec((0..6_u8, 0..20_u64), 1..200),
        ) {
            let mut in_flight = InFlightBatches::default();
            for (step, number) in steps {
                match step {
                    0 | 1 => in_flight.add(vec![0; number as usize].into(), number as u32, ms(0)),
                    2 => { in_flight.send_next(ms(number)); }
                    3 => { in_flight.finish(in_flight.settled() + number); }
                    4 => { in_flight.put_off(in_flight.settled() + number, ms(number)); }
                    _ => in_flight.disconnected(),
                }
                let held = || in_flight.held.iter().flatten();
                let records: u64 = held().map(|held| u64::from(held.records)).sum();
                let bytes: u64 = held().map(|held| held.frame.len() as u64).sum();
                let sent = held().filter(|held| held.way == Way::Sent).count();
                let sums = (in_flight.records, in_flight.bytes, in_flight.in_flight);
                prop_assert_eq!(sums, (records, bytes, sent));
                prop_assert!(in_flight.held.front().is_none_or(Option::is_some));
            }
        }
    }
}
