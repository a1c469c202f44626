use super::super::fleet::ExecutorBelief;
use super::super::line::{Place, RuntimeId};
use super::super::{ExecutorId, Ticket};
use super::{PlaceNext, Protocol, Step, World};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A line for each executor. A newcomer joins the shorter of two; an executor with a free slot takes the first of its
/// own, and with nobody in its own line the first of the longest: nobody waits beside a slot that stands idle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Queue {
    lines: BTreeMap<ExecutorId, BTreeSet<(Place, Ticket)>>,
    joined: BTreeMap<Ticket, (ExecutorId, Place)>,
}

// === impl Queue ===

impl Queue {
    /// Those who are in the line and in no executor's yet.
    fn join_all(&mut self, world: &World, now: Duration, chance: &mut dyn FnMut() -> u64) {
        if self.joined.len() == world.line.len() {
            return;
        }
        let new: Vec<_> =
            world.line.tickets().filter(|(ticket, ..)| !self.joined.contains_key(ticket)).collect();
        for (ticket, place, runtime) in new {
            if let Some(executor) = self.shorter_of_two(world, runtime, now, chance) {
                self.lines.entry(executor).or_default().insert((place, ticket));
                self.joined.insert(ticket, (executor, place));
            }
        }
    }

    fn shorter_of_two(
        &self,
        world: &World,
        runtime: RuntimeId,
        now: Duration,
        chance: &mut dyn FnMut() -> u64,
    ) -> Option<ExecutorId> {
        let mut up: Vec<_> = world.fleet.open(runtime, now).collect();
        if up.is_empty() {
            up =
                world.fleet.iter().filter(|(_, it)| it.up && it.serves.includes(runtime)).collect();
        }
        let count = up.len() as u64;
        let mut pick = || usize::try_from(chance().checked_rem(count)?).ok();
        let (one, two) = (up[pick()?], up[pick()?]);
        let (id, _) = if self.load(two) < self.load(one) { two } else { one };
        Some(id)
    }

    /// What waits there and what runs there, for each slot, in thousandths.
    fn load(&self, (id, executor): (ExecutorId, &ExecutorBelief)) -> u64 {
        let waiting = self.lines.get(&id).map_or(0, BTreeSet::len) as u64;
        let taken = u64::from(executor.ours) + u64::from(executor.foreign);
        (waiting + taken) * 1_000 / u64::from(executor.max.max(1))
    }

    /// The first of the longest line of which this executor can have the first.
    fn steal(&self, world: &World, thief: &ExecutorBelief) -> Option<Ticket> {
        let heads = self.lines.values().filter_map(|line| {
            let (_, ticket) = line.iter().find(|(_, ticket)| {
                let wanted = world.line.place_of(*ticket);
                wanted.is_some_and(|(_, runtime)| thief.serves.includes(runtime))
            })?;
            Some((line.len(), *ticket))
        });
        heads.max_by_key(|(length, ticket)| (*length, std::cmp::Reverse(*ticket))).map(|(_, it)| it)
    }
}

impl PlaceNext for Queue {
    fn next(
        &mut self,
        world: &World,
        now: Duration,
        chance: &mut dyn FnMut() -> u64,
    ) -> Option<Step> {
        self.join_all(world, now, chance);
        let free: Vec<_> = world.fleet.iter().filter(|(_, it)| it.free(now) > 0).collect();
        for (id, _) in &free {
            if let Some((_, ticket)) = self.lines.get(id).and_then(BTreeSet::first) {
                return Some(Step { ticket: *ticket, executors: vec![*id] });
            }
        }
        let (id, ticket) = free.iter().find_map(|(id, it)| Some((*id, self.steal(world, it)?)))?;
        Some(Step { ticket, executors: vec![id] })
    }

    fn protocol(&self) -> Protocol {
        Protocol::Direct
    }

    fn forget(&mut self, ticket: Ticket) {
        let Some((executor, place)) = self.joined.remove(&ticket) else { return };
        if let Some(line) = self.lines.get_mut(&executor) {
            line.remove(&(place, ticket));
        }
    }

    fn lost_executor(&mut self, executor: ExecutorId) {
        for (_, ticket) in self.lines.remove(&executor).unwrap_or_default() {
            self.joined.remove(&ticket);
        }
    }
}
