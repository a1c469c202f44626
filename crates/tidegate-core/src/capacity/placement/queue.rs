use super::super::fleet::ExecutorBelief;
use super::super::line::{Place, RuntimeId};
use super::super::{ExecutorId, Serves, Ticket};
use super::{PlaceNext, Protocol, Step, World};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// For each slot of the fleet, how many may overtake one of their own priority.
const OVERTAKES_PER_SLOT: u64 = 8;

/// A line for each executor. A newcomer joins the shorter of two; an executor with a free slot takes the first of
/// its own, and with nobody in its own line the first of the longest: nobody waits beside a slot that stands idle.
///
/// Lines move at different speeds. So that nobody is forgotten in a slow one, whoever has a free slot takes the
/// first of all instead, when that one is more urgent or came that many places before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Queue {
    lines: BTreeMap<ExecutorId, OwnLine>,
    tickets: BTreeMap<Ticket, Joined>,
    /// Who is in no executor's line yet, and whether it is worth while to look for one.
    homeless: Lanes,
    look: bool,
}

type Lanes = BTreeMap<RuntimeId, BTreeSet<(Place, Ticket)>>;

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct OwnLine {
    lanes: Lanes,
    length: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Joined {
    at: Option<ExecutorId>,
    place: Place,
    runtime: RuntimeId,
}

// === impl Queue ===

impl Queue {
    /// Those who are in the line and in no executor's yet.
    fn join_all(&mut self, world: &World, now: Duration, chance: &mut dyn FnMut() -> u64) {
        if !std::mem::take(&mut self.look) {
            return;
        }
        for (runtime, tickets) in std::mem::take(&mut self.homeless) {
            let mut near: Vec<_> = world.fleet.open(runtime, now).collect();
            if near.is_empty() {
                let up = world.fleet.iter().filter(|(_, it)| it.up && it.serves.includes(runtime));
                near = up.collect();
            }
            if near.is_empty() {
                self.homeless.insert(runtime, tickets);
                continue;
            }
            for (place, ticket) in tickets {
                let Some(executor) = self.shorter_of_two(&near, chance) else { continue };
                let line = self.lines.entry(executor).or_default();
                line.lanes.entry(runtime).or_default().insert((place, ticket));
                line.length += 1;
                self.tickets.insert(ticket, Joined { at: Some(executor), place, runtime });
            }
        }
    }

    fn shorter_of_two(
        &self,
        near: &[(ExecutorId, &ExecutorBelief)],
        chance: &mut dyn FnMut() -> u64,
    ) -> Option<ExecutorId> {
        let mut pick = || {
            let index = chance().checked_rem(near.len() as u64)?;
            near.get(usize::try_from(index).ok()?)
        };
        let (one, two) = (pick()?, pick()?);
        let (id, _) = if self.load(*two) < self.load(*one) { two } else { one };
        Some(*id)
    }

    /// What waits there and what runs there, for each slot, in thousandths.
    fn load(&self, (id, executor): (ExecutorId, &ExecutorBelief)) -> u64 {
        let waiting = self.lines.get(&id).map_or(0, |line| line.length);
        let taken = u64::from(executor.ours) + u64::from(executor.foreign);
        (waiting + taken) * 1_000 / u64::from(executor.max.max(1))
    }

    /// The first of the longest line that has somebody whom this executor can have.
    fn steal(&self, thief: &ExecutorBelief) -> Option<(Place, Ticket)> {
        let firsts = self.lines.values().filter_map(|line| {
            line.first(&thief.serves).map(|(place, ticket)| (line.length, Reverse((place, ticket))))
        });
        firsts.max().map(|(_, Reverse(first))| first)
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
        let overtakes_max = u64::from(world.fleet.slots().max(1)) * OVERTAKES_PER_SLOT;
        let mut idle = None;
        for (id, executor) in world.fleet.roomy().filter(|(_, it)| it.free(now) > 0) {
            let Some(head) = world.line.head(&executor.serves) else { continue };
            let own = self.lines.get(&id).and_then(|line| line.first(&executor.serves));
            if let Some(own) = own {
                let ticket = unless_unfair(own, head, overtakes_max);
                return Some(Step { ticket, executors: vec![id] });
            }
            idle = idle.or(Some((id, executor, head)));
        }
        let (id, executor, head) = idle?;
        let stolen = self.steal(executor).unwrap_or(head);
        let ticket = unless_unfair(stolen, head, overtakes_max);
        Some(Step { ticket, executors: vec![id] })
    }

    fn protocol(&self) -> Protocol {
        Protocol::Direct
    }

    fn came(&mut self, ticket: Ticket, place: Place, runtime: RuntimeId) {
        self.tickets.insert(ticket, Joined { at: None, place, runtime });
        self.homeless.entry(runtime).or_default().insert((place, ticket));
        self.look = true;
    }

    fn forget(&mut self, ticket: Ticket) {
        let Some(Joined { at, place, runtime }) = self.tickets.remove(&ticket) else { return };
        match at {
            None => remove(&mut self.homeless, runtime, (place, ticket)),
            Some(executor) => {
                let Some(line) = self.lines.get_mut(&executor) else { return };
                remove(&mut line.lanes, runtime, (place, ticket));
                line.length -= 1;
                if line.length == 0 {
                    self.lines.remove(&executor);
                }
            }
        }
    }

    fn found_executor(&mut self) {
        self.look = true;
    }

    fn lost_executor(&mut self, executor: ExecutorId) {
        for (runtime, tickets) in self.lines.remove(&executor).unwrap_or_default().lanes {
            for (place, ticket) in tickets {
                self.came(ticket, place, runtime);
            }
        }
    }
}

// === impl OwnLine ===

impl OwnLine {
    fn first(&self, serves: &Serves) -> Option<(Place, Ticket)> {
        let lanes = self.lanes.iter().filter(|(runtime, _)| serves.includes(**runtime));
        lanes.filter_map(|(_, lane)| lane.first()).min().copied()
    }
}

fn remove(lanes: &mut Lanes, runtime: RuntimeId, who: (Place, Ticket)) {
    if let Some(lane) = lanes.get_mut(&runtime) {
        lane.remove(&who);
        if lane.is_empty() {
            lanes.remove(&runtime);
        }
    }
}

/// The one who is next by the lines, unless the first of all is more urgent or has been overtaken enough.
fn unless_unfair(next: (Place, Ticket), head: (Place, Ticket), overtakes_max: u64) -> Ticket {
    let late = next.0.seq.saturating_sub(head.0.seq) > overtakes_max;
    if head.0.priority < next.0.priority || late { head.1 } else { next.1 }
}
