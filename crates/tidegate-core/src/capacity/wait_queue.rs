use crate::admission::MessagePriority;
use std::collections::{BTreeMap, VecDeque};

/// Number of one attempt at a task, chosen by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Number of a runtime, chosen by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuntimeId(pub u16);

/// Position in the queue: smaller is served first. It stays valid while others come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueuePosition {
    /// Served first, within the queue.
    pub priority: MessagePriority,
    /// Order of arrival within a priority.
    pub seq: u64,
}

/// Runtimes of an executor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ExecutorRuntimes {
    /// Any runtime: the executor declares none.
    All,
    /// These runtimes, in order.
    Only(Vec<RuntimeId>),
}

/// Queue of attempts that wait for a slot, by priority and then by arrival. An attempt that an executor refuses
/// returns to its old position.
///
/// ```
/// use tidegate_core::admission::MessagePriority::{High, Normal};
/// use tidegate_core::capacity::{RuntimeId, ExecutorRuntimes, Ticket, WaitQueue};
///
/// let mut queue = WaitQueue::default();
/// let python = RuntimeId(0);
/// queue.join(Ticket(1), Normal, python);
/// queue.join(Ticket(2), High, python);
/// assert_eq!(queue.ahead_of(Ticket(1)), Some(1));
/// assert_eq!(queue.head(&ExecutorRuntimes::All).map(|(_, ticket)| ticket), Some(Ticket(2)));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct WaitQueue {
    lanes: BTreeMap<(MessagePriority, RuntimeId), VecDeque<(u64, Ticket)>>,
    positions: BTreeMap<Ticket, (QueuePosition, RuntimeId)>,
    seq_next: u64,
}

// === impl ExecutorRuntimes ===

impl ExecutorRuntimes {
    /// True if the runtime is among them.
    #[must_use]
    pub fn includes(&self, runtime: RuntimeId) -> bool {
        match self {
            Self::All => true,
            Self::Only(runtimes) => runtimes.contains(&runtime),
        }
    }
}

// === impl WaitQueue ===

impl WaitQueue {
    /// Queues an attempt behind all others of its priority. An attempt that is queued already keeps its position.
    pub fn join(
        &mut self,
        ticket: Ticket,
        priority: MessagePriority,
        runtime: RuntimeId,
    ) -> QueuePosition {
        if let Some((position, _)) = self.positions.get(&ticket) {
            return *position;
        }
        let position = QueuePosition { priority, seq: self.seq_next };
        self.seq_next += 1;
        self.put_back(ticket, position, runtime);
        position
    }

    /// Queues an attempt again at the position it had.
    pub fn put_back(&mut self, ticket: Ticket, position: QueuePosition, runtime: RuntimeId) {
        if self.positions.contains_key(&ticket) {
            return;
        }
        self.positions.insert(ticket, (position, runtime));
        let lane = self.lanes.entry((position.priority, runtime)).or_default();
        let at = lane.partition_point(|(seq, _)| *seq < position.seq);
        lane.insert(at, (position.seq, ticket));
    }

    /// Removes an attempt that is dispatched or withdrawn.
    pub fn leave(&mut self, ticket: Ticket) -> Option<(QueuePosition, RuntimeId)> {
        let (position, runtime) = self.positions.remove(&ticket)?;
        if let Some(lane) = self.lanes.get_mut(&(position.priority, runtime)) {
            let at = lane.partition_point(|(seq, _)| *seq < position.seq);
            if lane.get(at).is_some_and(|(_, found)| *found == ticket) {
                lane.remove(at);
            }
            if lane.is_empty() {
                self.lanes.remove(&(position.priority, runtime));
            }
        }
        Some((position, runtime))
    }

    /// First attempt that needs one of these runtimes.
    #[must_use]
    pub fn head(&self, serves: &ExecutorRuntimes) -> Option<(QueuePosition, Ticket)> {
        let mut first: Option<(QueuePosition, Ticket)> = None;
        for ((priority, runtime), lane) in &self.lanes {
            if first.is_some_and(|(position, _)| position.priority < *priority) {
                break;
            }
            if !serves.includes(*runtime) {
                continue;
            }
            if let Some((seq, ticket)) = lane.front() {
                let position = QueuePosition { priority: *priority, seq: *seq };
                if first.is_none_or(|(best, _)| position < best) {
                    first = Some((position, *ticket));
                }
            }
        }
        first
    }

    /// First attempt of each priority and runtime.
    pub(super) fn heads(&self) -> Vec<(QueuePosition, Ticket, RuntimeId)> {
        let firsts = self.lanes.iter().filter_map(|((priority, runtime), lane)| {
            let (seq, ticket) = *lane.front()?;
            Some((QueuePosition { priority: *priority, seq }, ticket, *runtime))
        });
        firsts.collect()
    }

    /// Number of attempts served before this one; `None` if it is not queued.
    #[must_use]
    pub fn ahead_of(&self, ticket: Ticket) -> Option<u64> {
        let (position, _) = self.positions.get(&ticket)?;
        let ahead: usize = self
            .lanes
            .iter()
            .map(|((priority, _), lane)| match priority.cmp(&position.priority) {
                std::cmp::Ordering::Less => lane.len(),
                std::cmp::Ordering::Equal => lane.partition_point(|(seq, _)| *seq < position.seq),
                std::cmp::Ordering::Greater => 0,
            })
            .sum();
        Some(ahead as u64)
    }

    /// Position and runtime of a queued attempt.
    #[must_use]
    pub fn position_of(&self, ticket: Ticket) -> Option<(QueuePosition, RuntimeId)> {
        self.positions.get(&ticket).copied()
    }

    /// All queued attempts, by ticket.
    pub fn tickets(&self) -> impl Iterator<Item = (Ticket, QueuePosition, RuntimeId)> {
        self.positions.iter().map(|(ticket, (position, runtime))| (*ticket, *position, *runtime))
    }

    /// Number of queued attempts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.positions.len()
    }

    /// True if no attempt is queued.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.positions.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use MessagePriority::{High, Low, Normal};

    const A: RuntimeId = RuntimeId(0);
    const B: RuntimeId = RuntimeId(1);

    fn order(queue: &mut WaitQueue, serves: &ExecutorRuntimes) -> Vec<u64> {
        let mut out = Vec::new();
        while let Some((_, ticket)) = queue.head(serves) {
            queue.leave(ticket);
            out.push(ticket.0);
        }
        out
    }

    #[test]
    fn priority_first_then_arrival_across_runtimes() {
        let mut queue = WaitQueue::default();
        for (ticket, priority, runtime) in
            [(1, Normal, A), (2, Low, A), (3, Normal, B), (4, High, B), (5, Normal, A)]
        {
            queue.join(Ticket(ticket), priority, runtime);
        }
        assert_eq!(queue.ahead_of(Ticket(5)), Some(3));
        assert_eq!(queue.ahead_of(Ticket(2)), Some(4));
        assert_eq!(order(&mut queue.clone(), &ExecutorRuntimes::All), [4, 1, 3, 5, 2]);
        assert_eq!(order(&mut queue, &ExecutorRuntimes::Only(vec![A])), [1, 5, 2]);
        assert_eq!(queue.len(), 2);
    }

    #[test]
    fn a_requeued_attempt_has_its_old_position() {
        let mut queue = WaitQueue::default();
        for ticket in 1..=3 {
            queue.join(Ticket(ticket), Normal, A);
        }
        let (position, runtime) = queue.leave(Ticket(1)).unwrap();
        assert_eq!(queue.head(&ExecutorRuntimes::All).unwrap().1, Ticket(2));
        queue.put_back(Ticket(1), position, runtime);
        queue.put_back(Ticket(1), position, runtime);
        assert_eq!(order(&mut queue, &ExecutorRuntimes::All), [1, 2, 3]);
        assert_eq!(queue.leave(Ticket(1)), None);
    }

    #[test]
    fn joining_twice_queues_once() {
        let mut queue = WaitQueue::default();
        let first = queue.join(Ticket(1), Normal, A);
        queue.join(Ticket(2), Normal, A);
        assert_eq!(queue.join(Ticket(1), High, B), first);
        assert_eq!(order(&mut queue, &ExecutorRuntimes::All), [1, 2]);
        assert!(queue.is_empty());
    }
}
