use super::entry::{Entry, FlowId};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;

/// Services of a flow that its rate is measured over: from 32 to 64, an error of a sixth.
const SERVICES_MAX: u32 = 64;

/// Services from which on the rate of a flow is believed, with an error of a quarter.
const SERVICES_MIN: u32 = 16;

/// The requests of one priority: flows that take turns by deficit round robin.
///
/// Implementation: a flow exists while it has requests. `turns` orders the flows for service; a flow moves to the
/// next round when its deficit is used up. One that arrives joins the round that is being served, unless it was
/// served in it: so a client that sends one request after another gets its turn in each round, as one with a
/// backlog does. `backlogs` orders the flows by cost and weight, to find the longest one at the bound.
#[derive(Debug)]
pub(super) struct Band<T> {
    flows: BTreeMap<FlowId, Flow<T>>,
    turns: BTreeMap<Turn, FlowId>,
    backlogs: BTreeSet<(u64, FlowId)>,
    next_order: u64,
    /// Round of the last request that was served.
    round: u64,
    /// Flows without requests that were served in this round.
    had_turn: BTreeSet<FlowId>,
    /// Turns of this round that are used up, by flows that wait for the next one.
    used_up: usize,
    /// Flows that joined this round before those.
    joined: usize,
    /// Cost that a flow of weight 1 may use in a turn: the highest cost seen, so that each turn serves at least
    /// one.
    quantum: u64,
    len: usize,
    bytes: u64,
    weights: u64,
}

/// Turn of a flow: those of a round come before those of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Turn {
    round: u64,
    order: u64,
}

#[derive(Debug)]
struct Flow<T> {
    entries: BTreeMap<u64, Entry<T>>,
    weight: u32,
    cost: u64,
    deficit: u64,
    turn: Turn,
    /// True once the flow got the quantum of its current turn.
    granted: bool,
    /// Requests served since `counted_from`. The flow has had requests waiting all that time.
    served: u32,
    counted_from: Duration,
}

// === impl Band ===

impl<T> Band<T> {
    pub fn new() -> Self {
        Self {
            flows: BTreeMap::new(),
            turns: BTreeMap::new(),
            backlogs: BTreeSet::new(),
            next_order: 0,
            round: 0,
            had_turn: BTreeSet::new(),
            used_up: 0,
            joined: 0,
            quantum: 1,
            len: 0,
            bytes: 0,
            weights: 0,
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn push(&mut self, flow: FlowId, weight: u32, sequence: u64, entry: Entry<T>) {
        self.len += 1;
        self.bytes += entry.bytes;
        self.quantum = self.quantum.max(entry.cost);
        // One before each that waits for the next round: ever new flows would keep them from it for ever.
        let is_late = self.had_turn.contains(&flow) || self.joined > self.used_up;
        let turn = Turn { round: self.round + u64::from(is_late), order: self.next_order };
        let counted_from = entry.since;
        let state = self.flows.entry(flow).or_insert_with(|| Flow {
            entries: BTreeMap::new(),
            weight: 0,
            cost: 0,
            deficit: 0,
            turn,
            granted: false,
            served: 0,
            counted_from,
        });
        if state.entries.is_empty() {
            self.turns.insert(turn, flow);
            self.next_order += 1;
            self.joined += usize::from(!is_late);
        } else {
            self.backlogs.remove(&(state.backlog(), flow));
        }
        self.weights = self.weights - u64::from(state.weight) + u64::from(weight);
        state.weight = weight;
        state.cost += entry.cost;
        state.entries.insert(sequence, entry);
        self.backlogs.insert((state.backlog(), flow));
    }

    pub fn remove(&mut self, flow: FlowId, sequence: u64) -> Option<Entry<T>> {
        let state = self.flows.get_mut(&flow)?;
        let backlog = state.backlog();
        let entry = state.entries.remove(&sequence)?;
        self.backlogs.remove(&(backlog, flow));
        state.cost -= entry.cost;
        if state.entries.is_empty() {
            self.turns.remove(&state.turn);
            self.weights -= u64::from(state.weight);
            self.flows.remove(&flow);
        } else {
            let backlog = state.backlog();
            self.backlogs.insert((backlog, flow));
        }
        self.len -= 1;
        self.bytes -= entry.bytes;
        if self.len == 0 {
            self.quantum = 1;
        }
        Some(entry)
    }

    /// Returns the next request to be served: its turn, its flow and its sequence. After a request that could not
    /// use the slot, that is the next one of the same flow, then the oldest one of the flow whose turn comes next.
    /// A flow gets the quantum of its turn, and moves behind the others when that is used up.
    pub fn candidate(&mut self, after: Option<(Turn, u64)>) -> Option<(Turn, FlowId, u64)> {
        if let Some((turn, sequence)) = after
            && let Some(found) = self.behind(turn, sequence)
        {
            return Some(found);
        }
        loop {
            let from = after.map_or(Bound::Unbounded, |(turn, _)| Bound::Excluded(turn));
            let (&turn, &flow) = self.turns.range((from, Bound::Unbounded)).next()?;
            let state = self.flows.get_mut(&flow)?;
            let (&sequence, head) = state.entries.first_key_value()?;
            let cost = head.cost;
            if !state.granted {
                state.granted = true;
                state.deficit += self.quantum * u64::from(state.weight);
            }
            if cost <= state.deficit {
                return Some((turn, flow, sequence));
            }
            self.turns.remove(&turn);
            state.granted = false;
            state.turn = Turn { round: turn.round + 1, order: self.next_order };
            self.turns.insert(state.turn, flow);
            self.next_order += 1;
            self.used_up += usize::from(turn.round == self.round);
        }
    }

    /// Returns the request behind this one in its flow. The deficit does not matter: a slot that only this flow
    /// can use must not go to a lower band.
    fn behind(&self, turn: Turn, sequence: u64) -> Option<(Turn, FlowId, u64)> {
        let flow = *self.turns.get(&turn)?;
        let (&next, _) = self.flows.get(&flow)?.entries.range(sequence + 1..).next()?;
        Some((turn, flow, next))
    }

    pub fn item(&self, flow: FlowId, sequence: u64) -> Option<&Entry<T>> {
        self.flows.get(&flow)?.entries.get(&sequence)
    }

    /// Removes a candidate that was served, and charges it to its flow.
    pub fn serve(&mut self, flow: FlowId, sequence: u64, now: Duration) -> Option<Entry<T>> {
        let cost = self.item(flow, sequence)?.cost;
        if let Some(state) = self.flows.get_mut(&flow) {
            state.deficit = state.deficit.saturating_sub(cost);
            state.count_served(now);
            if state.turn.round > self.round {
                self.round = state.turn.round;
                self.had_turn.clear();
                (self.used_up, self.joined) = (0, 0);
            }
        }
        let entry = self.remove(flow, sequence);
        if !self.flows.contains_key(&flow) {
            self.had_turn.insert(flow);
        }
        if self.len == 0 {
            // Nobody waits, and nobody is before another.
            self.had_turn.clear();
        }
        entry
    }

    /// The backlog in cost for each weight that a flow would have with this much more.
    pub fn backlog_with(&self, flow: FlowId, weight: u32, cost: u64) -> u64 {
        let waiting = self.flows.get(&flow).map_or(0, |state| state.cost);
        per_weight(waiting + cost, weight)
    }

    /// The flow with the longest backlog in cost for each weight, and that backlog.
    pub fn longest(&self) -> Option<(u64, FlowId)> {
        self.backlogs.last().copied()
    }

    /// Removes the newest request of the flow with the longest backlog.
    pub fn pop_newest(&mut self) -> Option<Entry<T>> {
        let (flow, sequence) = self.newest()?;
        self.remove(flow, sequence)
    }

    /// Bytes of the newest request of the flow with the longest backlog.
    pub fn newest_bytes(&self) -> u64 {
        let entry = self.newest().and_then(|(flow, sequence)| self.item(flow, sequence));
        entry.map_or(0, |entry| entry.bytes)
    }

    /// The sequence of the request that has waited longest.
    pub fn oldest(&self) -> Option<u64> {
        let heads = self.flows.values().filter_map(|state| state.entries.first_key_value());
        heads.map(|(&sequence, _)| sequence).min()
    }

    fn newest(&self) -> Option<(FlowId, u64)> {
        let (_, flow) = self.longest()?;
        let (&sequence, _) = self.flows.get(&flow)?.entries.last_key_value()?;
        Some((flow, sequence))
    }

    /// The wait of a request that arrives now behind others of its flow, at the rate at which the flow has been
    /// served. `None` if none waits, or while that rate is not known.
    pub fn flow_wait(&self, flow: FlowId, now: Duration) -> Option<Duration> {
        let state = self.flows.get(&flow).filter(|state| state.served >= SERVICES_MIN)?;
        let elapsed_s = now.saturating_sub(state.counted_from).as_secs_f64();
        let wait_s = (state.entries.len() + 1) as f64 * elapsed_s / f64::from(state.served);
        Some(Duration::from_secs_f64(wait_s))
    }

    /// Requests that are served before one that arrives now in this flow, if all have the same cost.
    pub fn ahead_of(&self, flow: FlowId, weight: u32) -> usize {
        let (own, known) = match self.flows.get(&flow) {
            Some(state) => (state.entries.len() as u64, u64::from(state.weight)),
            None => (0, 0),
        };
        // While this flow is served `own + 1` requests, each other gets its weight's part of as many, if it has
        // them.
        let others = self.weights - known;
        let turns = (own + 1) * others / u64::from(weight.max(1));
        let theirs = self.len as u64 - own;
        (own + turns.min(theirs)) as usize
    }
}

// === impl Flow ===

impl<T> Flow<T> {
    fn backlog(&self) -> u64 {
        per_weight(self.cost, self.weight)
    }

    fn count_served(&mut self, now: Duration) {
        self.served += 1;
        if self.served == SERVICES_MAX {
            self.served /= 2;
            self.counted_from += now.saturating_sub(self.counted_from) / 2;
        }
    }
}

/// Cost for each weight, in thousandths: flows of different weights compare exactly enough.
fn per_weight(cost: u64, weight: u32) -> u64 {
    cost.saturating_mul(1000) / u64::from(weight.max(1))
}
