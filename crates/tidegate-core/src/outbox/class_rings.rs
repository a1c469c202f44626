//! Implementation: a queue with removal from its middle.
//!
//! Each class has its own ring, and every message a sequence number. The head of the queue is the ring head with
//! the lowest number, and the oldest message of a class is the head of its ring: both are found without a search
//! and removed without moving anything else.

use std::collections::VecDeque;

/// Classes that share the queue, in the order in which they are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ring {
    Telemetry,
    Data,
    Dispatch,
}

#[derive(Debug)]
struct Entry<T> {
    seq: i64,
    value: T,
}

/// The queue. Its owner enforces the bound; the rings grow with their content, up to the bound.
#[derive(Debug)]
pub(super) struct ClassRings<T> {
    rings: [VecDeque<Entry<T>>; 3],
    length: usize,
    bound: usize,
    /// Sequence number of the next message that is put back: one below the head's.
    before: i64,
    /// Sequence number of the next new message.
    next: i64,
}

/// Initial capacity of a ring: less would be reallocated at once.
const RING_START: usize = 8;

// === impl Ring ===

impl Ring {
    const ALL: [Self; 3] = [Self::Telemetry, Self::Data, Self::Dispatch];
}

// === impl ClassRings ===

impl<T> ClassRings<T> {
    pub(super) fn new(bound: usize) -> Self {
        let rings = std::array::from_fn(|_| VecDeque::new());
        Self { rings, length: 0, bound, before: -1, next: 0 }
    }

    #[inline]
    pub(super) fn length(&self) -> usize {
        self.length
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.length >= self.bound
    }

    #[inline]
    pub(super) fn push_back(&mut self, ring: Ring, value: T) {
        let seq = self.next;
        self.next += 1;
        self.ring_with_room(ring).push_back(Entry { seq, value });
        self.length += 1;
    }

    pub(super) fn push_front(&mut self, ring: Ring, value: T) {
        let seq = self.before;
        self.before -= 1;
        self.ring_with_room(ring).push_front(Entry { seq, value });
        self.length += 1;
    }

    /// Removes the head of the queue.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        let seq =
            |ring: Ring| self.rings[ring as usize].front().map_or(i64::MAX, |entry| entry.seq);
        let first = Ring::ALL.into_iter().min_by_key(|ring| seq(*ring))?;
        self.pop_from(first)
    }

    /// Removes the oldest message of one class.
    #[inline]
    pub(super) fn pop_from(&mut self, ring: Ring) -> Option<T> {
        let entry = self.rings[ring as usize].pop_front()?;
        self.length -= 1;
        Some(entry.value)
    }

    /// Removes messages for which `keep` is false, each class from its oldest on.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        for ring in &mut self.rings {
            ring.retain(|entry| keep(&entry.value));
        }
        self.length = self.rings.iter().map(VecDeque::len).sum();
    }

    /// Doubles the ring's capacity as usual, but never beyond the bound.
    #[inline]
    fn ring_with_room(&mut self, ring: Ring) -> &mut VecDeque<Entry<T>> {
        let ring = &mut self.rings[ring as usize];
        if ring.len() == ring.capacity() {
            let target = (ring.len() * 2).max(RING_START).min(self.bound.max(ring.len() + 1));
            ring.reserve_exact(target - ring.len());
        }
        ring
    }

    /// Allocated capacity, in messages.
    #[cfg(test)]
    fn capacity(&self) -> usize {
        self.rings.iter().map(VecDeque::capacity).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_is_first_in_first_out_across_classes_and_put_back_goes_first() {
        let mut rings = ClassRings::new(10);
        rings.push_back(Ring::Data, 1);
        rings.push_back(Ring::Dispatch, 2);
        rings.push_back(Ring::Telemetry, 3);
        rings.push_front(Ring::Telemetry, 0);
        rings.push_front(Ring::Dispatch, -1);
        assert_eq!(rings.length(), 5);
        let all: Vec<_> = std::iter::from_fn(|| rings.pop()).collect();
        assert_eq!(all, [-1, 0, 1, 2, 3]);
        assert_eq!(rings.length(), 0);
    }

    #[test]
    fn the_oldest_of_a_class_leaves_from_the_middle() {
        let mut rings = ClassRings::new(10);
        rings.push_back(Ring::Data, 1);
        rings.push_back(Ring::Telemetry, 2);
        rings.push_back(Ring::Data, 3);
        assert_eq!(rings.pop_from(Ring::Telemetry), Some(2));
        assert_eq!(rings.pop_from(Ring::Telemetry), None);
        assert_eq!((rings.pop(), rings.pop(), rings.pop()), (Some(1), Some(3), None));
    }

    #[test]
    fn buffers_grow_with_what_they_hold_and_never_beyond_the_bound() {
        let mut rings = ClassRings::new(600);
        assert_eq!(rings.capacity(), 0, "a destination that says nothing costs nothing");
        rings.push_back(Ring::Data, 0);
        assert_eq!(rings.capacity(), RING_START);
        while !rings.is_full() {
            rings.push_back(Ring::Data, 0);
        }
        assert_eq!(rings.capacity(), 600);
    }
}
