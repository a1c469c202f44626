use super::super::wait_queue::QueuePosition;
use super::super::{ExecutorId, Ticket};
use super::{DispatchState, PlacementPolicy, Protocol, Selection};
use std::cmp::Reverse;
use std::time::Duration;

/// One queue. While an executor has a free slot, the first attempt that it can run goes there; among several
/// executors, to the one with the most free slots.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pull {
    reserves: bool,
}

/// Queue position, free slots, executor: the smallest is next.
type Rank = (QueuePosition, Reverse<u32>, ExecutorId);

// === impl Pull ===

impl Pull {
    /// Sends attempts at once: the known number of free slots is nearly always right.
    pub fn direct() -> Self {
        Self { reserves: false }
    }

    /// Reserves a slot before sending.
    pub fn reserving() -> Self {
        Self { reserves: true }
    }
}

impl PlacementPolicy for Pull {
    fn next(
        &mut self,
        state: &DispatchState,
        now: Duration,
        _chance: &mut dyn FnMut() -> u64,
    ) -> Option<Selection> {
        if state.queue.is_empty() {
            return None;
        }
        let mut best: Option<(Rank, Ticket)> = None;
        for (id, executor) in state.fleet.with_room() {
            let free = executor.free(now);
            if free == 0 {
                continue;
            }
            let Some((position, ticket)) = state.queue.head(&executor.serves) else { continue };
            let rank = (position, Reverse(free), id);
            if best.is_none_or(|(other, _)| rank < other) {
                best = Some((rank, ticket));
            }
        }
        best.map(|((.., id), ticket)| Selection { ticket, executors: vec![id] })
    }

    fn protocol(&self) -> Protocol {
        if self.reserves { Protocol::Reserved } else { Protocol::Direct }
    }
}
