//! Implementation: one line of messages that can be left from its middle.
//!
//! Each class that shares the line has a ring of its own, and every message a place number. The head of the
//! line is the ring head with the lowest number, and the oldest of a class is the head of its ring: both are
//! found without a search and taken without moving anything else.

use std::collections::VecDeque;

/// The classes that share the line, in the order in which they make room for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    Telemetry,
    Data,
    Dispatch,
}

#[derive(Debug)]
struct Waiting<T> {
    place: i64,
    value: T,
}

/// The line. It holds no more than its owner lets in; the rings grow with what they hold, up to that.
#[derive(Debug)]
pub(super) struct Lines<T> {
    rings: [VecDeque<Waiting<T>>; 3],
    length: usize,
    bound: usize,
    /// The place of the next message that is put back: one before the head.
    before: i64,
    /// The place of the next message that is put.
    next: i64,
}

/// A ring starts with room for so many: less would be allocated again at once.
const RING_START: usize = 8;

// === impl Line ===

impl Line {
    const ALL: [Self; 3] = [Self::Telemetry, Self::Data, Self::Dispatch];
}

// === impl Lines ===

impl<T> Lines<T> {
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
    pub(super) fn push_back(&mut self, line: Line, value: T) {
        let place = self.next;
        self.next += 1;
        self.ring_with_room(line).push_back(Waiting { place, value });
        self.length += 1;
    }

    pub(super) fn push_front(&mut self, line: Line, value: T) {
        let place = self.before;
        self.before -= 1;
        self.ring_with_room(line).push_front(Waiting { place, value });
        self.length += 1;
    }

    /// Takes the head of the line.
    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        let place = |line: Line| {
            self.rings[line as usize].front().map_or(i64::MAX, |waiting| waiting.place)
        };
        let oldest = Line::ALL.into_iter().min_by_key(|line| place(*line))?;
        self.pop_from(oldest)
    }

    /// Takes the oldest of one class.
    #[inline]
    pub(super) fn pop_from(&mut self, line: Line) -> Option<T> {
        let waiting = self.rings[line as usize].pop_front()?;
        self.length -= 1;
        Some(waiting.value)
    }

    /// Takes out all that are not to be kept, each class from its oldest on.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        for ring in &mut self.rings {
            ring.retain(|waiting| keep(&waiting.value));
        }
        self.length = self.rings.iter().map(VecDeque::len).sum();
    }

    /// Doubles like any ring, but never beyond the bound.
    #[inline]
    fn ring_with_room(&mut self, line: Line) -> &mut VecDeque<Waiting<T>> {
        let ring = &mut self.rings[line as usize];
        if ring.len() == ring.capacity() {
            let target = (ring.len() * 2).max(RING_START).min(self.bound.max(ring.len() + 1));
            ring.reserve_exact(target - ring.len());
        }
        ring
    }

    /// Room that is allocated, in messages.
    #[cfg(test)]
    fn capacity(&self) -> usize {
        self.rings.iter().map(VecDeque::capacity).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_first_in_first_out_across_classes_and_put_back_goes_first() {
        let mut lines = Lines::new(10);
        lines.push_back(Line::Data, 1);
        lines.push_back(Line::Dispatch, 2);
        lines.push_back(Line::Telemetry, 3);
        lines.push_front(Line::Telemetry, 0);
        lines.push_front(Line::Dispatch, -1);
        assert_eq!(lines.length(), 5);
        let all: Vec<_> = std::iter::from_fn(|| lines.pop()).collect();
        assert_eq!(all, [-1, 0, 1, 2, 3]);
        assert_eq!(lines.length(), 0);
    }

    #[test]
    fn the_oldest_of_a_class_leaves_from_the_middle() {
        let mut lines = Lines::new(10);
        lines.push_back(Line::Data, 1);
        lines.push_back(Line::Telemetry, 2);
        lines.push_back(Line::Data, 3);
        assert_eq!(lines.pop_from(Line::Telemetry), Some(2));
        assert_eq!(lines.pop_from(Line::Telemetry), None);
        assert_eq!((lines.pop(), lines.pop(), lines.pop()), (Some(1), Some(3), None));
    }

    #[test]
    fn buffers_grow_with_what_they_hold_and_never_beyond_the_bound() {
        let mut lines = Lines::new(600);
        assert_eq!(lines.capacity(), 0, "a destination that says nothing costs nothing");
        lines.push_back(Line::Data, 0);
        assert_eq!(lines.capacity(), RING_START);
        while !lines.is_full() {
            lines.push_back(Line::Data, 0);
        }
        assert_eq!(lines.capacity(), 600);
    }
}
