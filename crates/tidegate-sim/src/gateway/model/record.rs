use super::ask::Ask;
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate_core::admission::MessagePriority;
use tidegate_core::queue::{PoolQueueTotals, QueueKey};

/// The requests that wait, by priority, and the totals that follow from them.
#[derive(Debug, Default)]
pub struct Record {
    pub by_priority: [BTreeMap<u32, Waiter>; 4],
    pub totals: PoolQueueTotals,
}

/// A request that waits.
#[derive(Clone, Copy, Debug)]
pub struct Waiter {
    pub ask: Ask,
    pub key: QueueKey,
    pub until: Duration,
}

// === impl Record ===

impl Record {
    /// Returns the waiting requests that are more urgent than this, and may still be served.
    pub fn more_urgent(
        &self,
        priority: MessagePriority,
        now: Duration,
    ) -> impl Iterator<Item = &Ask> {
        let higher = self.by_priority[..priority.index()].iter().flat_map(BTreeMap::values);
        higher.filter(move |waiter| waiter.until > now).map(|waiter| &waiter.ask)
    }

    pub fn ask(&self, id: u32) -> Option<&Ask> {
        self.by_priority.iter().find_map(|waiters| waiters.get(&id)).map(|waiter| &waiter.ask)
    }

    pub fn remove(&mut self, id: u32) -> Option<Waiter> {
        self.by_priority.iter_mut().find_map(|waiters| waiters.remove(&id))
    }

    pub fn len(&self) -> usize {
        self.by_priority.iter().map(BTreeMap::len).sum()
    }
}
