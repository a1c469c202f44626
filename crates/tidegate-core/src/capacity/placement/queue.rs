use super::super::fleet::ExecutorState;
use super::super::wait_queue::{QueuePosition, RuntimeId};
use super::super::{ExecutorId, ExecutorRuntimes, Ticket};
use super::{DispatchState, PlacementPolicy, Protocol, Selection};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Overtakes allowed within a priority, for each slot of the fleet.
const OVERTAKES_PER_SLOT: u64 = 8;

/// One queue per executor. An attempt joins the shorter of two; an executor with a free slot takes the first of
/// its own queue or, if that is empty, the first of the longest. No attempt waits while a suitable slot is idle.
///
/// Queues advance at different speeds. An executor takes the oldest attempt overall instead if that one has a
/// higher priority, or if more than the allowed number of later ones would overtake it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Queue {
    queues: BTreeMap<ExecutorId, ExecutorQueue>,
    tickets: BTreeMap<Ticket, Joined>,
    /// Attempts in no executor's queue yet. `search_due` is set when an executor may have become available.
    unassigned: Lanes,
    search_due: bool,
}

type Lanes = BTreeMap<RuntimeId, BTreeSet<(QueuePosition, Ticket)>>;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct ExecutorQueue {
    lanes: Lanes,
    length: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Joined {
    at: Option<ExecutorId>,
    position: QueuePosition,
    runtime: RuntimeId,
}

// === impl Queue ===

impl Queue {
    /// Moves attempts that are in no executor's queue into one.
    fn assign_queues(
        &mut self,
        state: &DispatchState,
        now: Duration,
        random: &mut dyn FnMut() -> u64,
    ) {
        if !std::mem::take(&mut self.search_due) {
            return;
        }
        for (runtime, tickets) in std::mem::take(&mut self.unassigned) {
            let mut candidates: Vec<_> = state.fleet.open(runtime, now).collect();
            if candidates.is_empty() {
                let up = state
                    .fleet
                    .iter()
                    .filter(|(_, executor)| executor.up && executor.serves.includes(runtime));
                candidates = up.collect();
            }
            if candidates.is_empty() {
                self.unassigned.insert(runtime, tickets);
                continue;
            }
            for (position, ticket) in tickets {
                let Some(executor) = self.shorter_of_two(&candidates, random) else { continue };
                let queue = self.queues.entry(executor).or_default();
                queue.lanes.entry(runtime).or_default().insert((position, ticket));
                queue.length += 1;
                self.tickets.insert(ticket, Joined { at: Some(executor), position, runtime });
            }
        }
    }

    fn shorter_of_two(
        &self,
        candidates: &[(ExecutorId, &ExecutorState)],
        random: &mut dyn FnMut() -> u64,
    ) -> Option<ExecutorId> {
        let mut pick = || {
            let index = random().checked_rem(candidates.len() as u64)?;
            candidates.get(usize::try_from(index).ok()?)
        };
        let (one, two) = (pick()?, pick()?);
        let (id, _) = if self.load(*two) < self.load(*one) { two } else { one };
        Some(*id)
    }

    /// Queued and running attempts per slot, in thousandths.
    fn load(&self, (id, executor): (ExecutorId, &ExecutorState)) -> u64 {
        let waiting = self.queues.get(&id).map_or(0, |queue| queue.length);
        let taken = u64::from(executor.own) + u64::from(executor.foreign);
        (waiting + taken) * 1_000 / u64::from(executor.max.max(1))
    }

    /// First attempt of the longest queue that has one for this executor.
    fn steal(&self, thief: &ExecutorState) -> Option<(QueuePosition, Ticket)> {
        let firsts = self.queues.values().filter_map(|queue| {
            queue
                .first(&thief.serves)
                .map(|(position, ticket)| (queue.length, Reverse((position, ticket))))
        });
        firsts.max().map(|(_, Reverse(first))| first)
    }
}

impl PlacementPolicy for Queue {
    fn next(
        &mut self,
        state: &DispatchState,
        now: Duration,
        random: &mut dyn FnMut() -> u64,
    ) -> Option<Selection> {
        self.assign_queues(state, now, random);
        let overtakes_max = u64::from(state.fleet.slots().max(1)) * OVERTAKES_PER_SLOT;
        let mut idle = None;
        for (id, executor) in state.fleet.with_room().filter(|(_, executor)| executor.free(now) > 0)
        {
            let Some(head) = state.queue.head(&executor.serves) else { continue };
            let own = self.queues.get(&id).and_then(|queue| queue.first(&executor.serves));
            if let Some(own) = own {
                let ticket = bounded_overtaking(own, head, overtakes_max);
                return Some(Selection { ticket, executors: vec![id] });
            }
            idle = idle.or(Some((id, executor, head)));
        }
        let (id, executor, head) = idle?;
        let stolen = self.steal(executor).unwrap_or(head);
        let ticket = bounded_overtaking(stolen, head, overtakes_max);
        Some(Selection { ticket, executors: vec![id] })
    }

    fn protocol(&self) -> Protocol {
        Protocol::Direct
    }

    fn enqueued(&mut self, ticket: Ticket, position: QueuePosition, runtime: RuntimeId) {
        self.tickets.insert(ticket, Joined { at: None, position, runtime });
        self.unassigned.entry(runtime).or_default().insert((position, ticket));
        self.search_due = true;
    }

    fn dequeued(&mut self, ticket: Ticket) {
        let Some(Joined { at, position, runtime }) = self.tickets.remove(&ticket) else { return };
        match at {
            None => remove(&mut self.unassigned, runtime, (position, ticket)),
            Some(executor) => {
                let Some(queue) = self.queues.get_mut(&executor) else { return };
                remove(&mut queue.lanes, runtime, (position, ticket));
                queue.length -= 1;
                if queue.length == 0 {
                    self.queues.remove(&executor);
                }
            }
        }
    }

    fn executor_available(&mut self) {
        self.search_due = true;
    }

    fn executor_lost(&mut self, executor: ExecutorId) {
        for (runtime, tickets) in self.queues.remove(&executor).unwrap_or_default().lanes {
            for (position, ticket) in tickets {
                self.enqueued(ticket, position, runtime);
            }
        }
    }
}

// === impl ExecutorQueue ===

impl ExecutorQueue {
    fn first(&self, serves: &ExecutorRuntimes) -> Option<(QueuePosition, Ticket)> {
        let lanes = self.lanes.iter().filter(|(runtime, _)| serves.includes(**runtime));
        lanes.filter_map(|(_, lane)| lane.first()).min().copied()
    }
}

fn remove(lanes: &mut Lanes, runtime: RuntimeId, entry: (QueuePosition, Ticket)) {
    if let Some(lane) = lanes.get_mut(&runtime) {
        lane.remove(&entry);
        if lane.is_empty() {
            lanes.remove(&runtime);
        }
    }
}

/// The attempt next in its queue, unless the head of all has a higher priority or was overtaken too often.
fn bounded_overtaking(
    next: (QueuePosition, Ticket),
    head: (QueuePosition, Ticket),
    overtakes_max: u64,
) -> Ticket {
    let late = next.0.seq.saturating_sub(head.0.seq) > overtakes_max;
    if head.0.priority < next.0.priority || late { head.1 } else { next.1 }
}
