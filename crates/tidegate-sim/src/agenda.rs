use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Virtual time, in nanoseconds since the start.
pub(crate) type Time = u64;

/// Planned events in order of time, and in order of planning at the same time.
#[derive(Debug)]
pub(crate) struct Agenda<E> {
    heap: BinaryHeap<Entry<E>>,
    planned: u64,
}

#[derive(Debug)]
struct Entry<E> {
    at: Time,
    rank: u64,
    event: E,
}

// === impl Agenda ===

impl<E> Default for Agenda<E> {
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), planned: 0 }
    }
}

impl<E> Agenda<E> {
    pub(crate) fn plan(&mut self, at: Time, event: E) {
        self.planned += 1;
        self.heap.push(Entry { at, rank: self.planned, event });
    }

    /// Returns the time of the next event.
    pub(crate) fn next_at(&self) -> Option<Time> {
        self.heap.peek().map(|entry| entry.at)
    }

    pub(crate) fn next(&mut self) -> Option<(Time, E)> {
        self.heap.pop().map(|entry| (entry.at, entry.event))
    }
}

// === impl Entry ===

impl<E> Ord for Entry<E> {
    /// Reversed: the heap gives its greatest first, and the earliest is wanted.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.rank).cmp(&(self.at, self.rank))
    }
}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl<E> Eq for Entry<E> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_comes_first_and_equals_in_the_order_of_planning() {
        let mut agenda = Agenda::default();
        agenda.plan(2, 'a');
        agenda.plan(1, 'b');
        agenda.plan(1, 'c');
        let order: Vec<_> = std::iter::from_fn(|| agenda.next()).collect();
        assert_eq!(order, [(1, 'b'), (1, 'c'), (2, 'a')]);
    }
}
