use super::driver::ScheduledRequest;
use std::collections::VecDeque;
use std::time::Duration;

/// Limit of queued requests, and of scheduled retries. A queued request takes about 100 bytes.
pub const QUEUED_MAX: usize = 1_000_000;

/// TemplateQueue of due requests without a connection, first in first out.
///
/// Each template has its own queue: its requests have the same deadline, so the first also expires first.
pub(super) struct WaitQueue {
    queues: Vec<TemplateQueue>,
    len: usize,
    next_number: u64,
}

struct TemplateQueue {
    deadline: Option<Duration>,
    waiting: VecDeque<Waiting>,
}

/// Queued request.
pub(super) struct Waiting {
    pub scheduled: ScheduledRequest,
    /// Time of queueing.
    pub since: Duration,
    number: u64,
}

// === impl WaitQueue ===

impl WaitQueue {
    /// Makes a queue for templates with these deadlines.
    pub fn new(deadline: impl Iterator<Item = Option<Duration>>) -> Self {
        let queue = |deadline| TemplateQueue { deadline, waiting: VecDeque::new() };
        Self { queues: deadline.map(queue).collect(), len: 0, next_number: 0 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Queues a request, or returns it if the queue is full. Its template must exist.
    pub fn push(
        &mut self,
        scheduled: ScheduledRequest,
        now: Duration,
    ) -> Result<(), ScheduledRequest> {
        if self.len >= QUEUED_MAX {
            return Err(scheduled);
        }
        self.next_number += 1;
        let waiting = Waiting { scheduled, since: now, number: self.next_number };
        self.queues[usize::from(waiting.scheduled.template)].waiting.push_back(waiting);
        self.len += 1;
        Ok(())
    }

    /// Puts a request back in front of all others.
    pub fn push_front(&mut self, scheduled: ScheduledRequest, since: Duration) {
        let waiting = Waiting { scheduled, since, number: 0 };
        self.queues[usize::from(waiting.scheduled.template)].waiting.push_front(waiting);
        self.len += 1;
    }

    /// Removes the oldest request.
    pub fn pop(&mut self) -> Option<Waiting> {
        let oldest =
            |queue: &&mut TemplateQueue| queue.waiting.front().map(|waiting| waiting.number);
        let queues = self.queues.iter_mut().filter(|queue| !queue.waiting.is_empty());
        let taken = queues.min_by_key(oldest)?.waiting.pop_front()?;
        self.len -= 1;
        Some(taken)
    }

    /// Time of the next expiry.
    pub fn next_expiry(&self) -> Option<Duration> {
        self.queues.iter().filter_map(TemplateQueue::next_expiry).min()
    }

    /// Removes an expired request.
    pub fn pop_expired(&mut self, now: Duration) -> Option<ScheduledRequest> {
        let expired = |queue: &&mut TemplateQueue| queue.next_expiry().is_some_and(|at| at <= now);
        let taken = self.queues.iter_mut().find(expired)?.waiting.pop_front()?;
        self.len -= 1;
        Some(taken.scheduled)
    }
}

// === impl TemplateQueue ===

impl TemplateQueue {
    fn next_expiry(&self) -> Option<Duration> {
        Some(self.waiting.front()?.scheduled.due.saturating_add(self.deadline?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn queue() -> WaitQueue {
        WaitQueue::new([Some(10 * MS), None].into_iter())
    }

    #[test]
    fn the_oldest_of_all_templates_comes_first() {
        let mut queue = queue();
        for id in 0..6 {
            queue.push(ScheduledRequest::new(MS, (id % 2) as u16, id), MS).unwrap();
        }
        let first = queue.pop().unwrap();
        assert_eq!((first.scheduled.id, first.since), (0, MS));
        queue.push_front(first.scheduled, first.since);
        let order: Vec<u64> =
            std::iter::from_fn(|| queue.pop()).map(|waiting| waiting.scheduled.id).collect();
        assert_eq!(order, [0, 1, 2, 3, 4, 5]);
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn only_requests_with_a_deadline_expire() {
        let mut queue = queue();
        queue.push(ScheduledRequest::new(MS, 1, 1), MS).unwrap();
        queue.push(ScheduledRequest::new(2 * MS, 0, 2), MS).unwrap();
        assert_eq!(queue.next_expiry(), Some(12 * MS));
        assert!(queue.pop_expired(11 * MS).is_none());
        assert_eq!(queue.pop_expired(12 * MS).unwrap().id, 2);
        assert!(queue.pop_expired(Duration::MAX).is_none());
        assert_eq!(queue.len(), 1);
    }

    #[test]
    fn the_queue_is_bounded() {
        let mut queue = queue();
        for id in 0..QUEUED_MAX as u64 {
            queue.push(ScheduledRequest::new(MS, 1, id), MS).unwrap();
        }
        assert_eq!(queue.push(ScheduledRequest::new(MS, 0, 7), MS).unwrap_err().id, 7);
    }
}
