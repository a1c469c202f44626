use super::driver::Shot;
use std::collections::VecDeque;
use std::time::Duration;

/// How many requests may wait for a connection, and as many may be handed back for later. A request waiting takes
/// about 100 bytes.
pub const HELD_MAX: usize = 1_000_000;

/// Requests that are due and have no connection yet, the one that came first in front.
///
/// There is a queue for each template: all its requests have the same patience, so the first of a queue is also
/// the first of it whose deadline ends, and nothing must be searched for.
pub(super) struct Line {
    queues: Vec<Queue>,
    len: usize,
    numbers: u64,
}

struct Queue {
    patience: Option<Duration>,
    waiting: VecDeque<Waiting>,
}

/// One that waits.
pub(super) struct Waiting {
    pub shot: Shot,
    /// Since when.
    pub since: Duration,
    number: u64,
}

// === impl Line ===

impl Line {
    /// A line for templates with these deadlines.
    pub fn new(patience: impl Iterator<Item = Option<Duration>>) -> Self {
        let queue = |patience| Queue { patience, waiting: VecDeque::new() };
        Self { queues: patience.map(queue).collect(), len: 0, numbers: 0 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Lets it wait from now on, or gives it back when the line is full. Its template must exist.
    pub fn push(&mut self, shot: Shot, now: Duration) -> Result<(), Shot> {
        if self.len >= HELD_MAX {
            return Err(shot);
        }
        self.numbers += 1;
        let waiting = Waiting { shot, since: now, number: self.numbers };
        self.queues[usize::from(waiting.shot.template)].waiting.push_back(waiting);
        self.len += 1;
        Ok(())
    }

    /// Puts one back that had its turn, and could not use it: in front of all others.
    pub fn push_front(&mut self, shot: Shot, since: Duration) {
        let waiting = Waiting { shot, since, number: 0 };
        self.queues[usize::from(waiting.shot.template)].waiting.push_front(waiting);
        self.len += 1;
    }

    /// Takes the one that has waited longest.
    pub fn pop(&mut self) -> Option<Waiting> {
        let oldest = |queue: &&mut Queue| queue.waiting.front().map(|waiting| waiting.number);
        let queues = self.queues.iter_mut().filter(|queue| !queue.waiting.is_empty());
        let taken = queues.min_by_key(oldest)?.waiting.pop_front()?;
        self.len -= 1;
        Some(taken)
    }

    /// When the first of those that wait gives up.
    pub fn next_expiry(&self) -> Option<Duration> {
        self.queues.iter().filter_map(Queue::next_expiry).min()
    }

    /// Takes one that has given up.
    pub fn pop_expired(&mut self, now: Duration) -> Option<Shot> {
        let expired = |queue: &&mut Queue| queue.next_expiry().is_some_and(|at| at <= now);
        let taken = self.queues.iter_mut().find(expired)?.waiting.pop_front()?;
        self.len -= 1;
        Some(taken.shot)
    }
}

// === impl Queue ===

impl Queue {
    fn next_expiry(&self) -> Option<Duration> {
        Some(self.waiting.front()?.shot.due.saturating_add(self.patience?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn line() -> Line {
        Line::new([Some(10 * MS), None].into_iter())
    }

    #[test]
    fn the_oldest_of_all_templates_comes_first() {
        let mut line = line();
        for id in 0..6 {
            line.push(Shot::new(MS, (id % 2) as u16, id), MS).unwrap();
        }
        let first = line.pop().unwrap();
        assert_eq!((first.shot.id, first.since), (0, MS));
        line.push_front(first.shot, first.since);
        let order: Vec<u64> = std::iter::from_fn(|| line.pop()).map(|it| it.shot.id).collect();
        assert_eq!(order, [0, 1, 2, 3, 4, 5]);
        assert_eq!(line.len(), 0);
    }

    #[test]
    fn only_those_with_a_deadline_give_up() {
        let mut line = line();
        line.push(Shot::new(MS, 1, 1), MS).unwrap();
        line.push(Shot::new(2 * MS, 0, 2), MS).unwrap();
        assert_eq!(line.next_expiry(), Some(12 * MS));
        assert!(line.pop_expired(11 * MS).is_none());
        assert_eq!(line.pop_expired(12 * MS).unwrap().id, 2);
        assert!(line.pop_expired(Duration::MAX).is_none());
        assert_eq!(line.len(), 1);
    }

    #[test]
    fn it_has_a_bound() {
        let mut line = line();
        for id in 0..HELD_MAX as u64 {
            line.push(Shot::new(MS, 1, id), MS).unwrap();
        }
        assert_eq!(line.push(Shot::new(MS, 0, 7), MS).unwrap_err().id, 7);
    }
}
