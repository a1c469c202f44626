use crate::admission::MessagePriority;
use std::collections::{BTreeMap, VecDeque};

/// One attempt at a task that waits for a slot or has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// A runtime, by a number that its user gave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RuntimeId(pub u16);

/// A place in the line: the smaller, the sooner. Keeps its meaning while others come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Who goes first.
    pub priority: MessagePriority,
    /// Within a priority, in the order of arrival.
    pub seq: u64,
}

/// Which runtimes an executor has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Serves {
    /// Whatever is asked for: it does not say.
    All,
    /// These, in order.
    Only(Vec<RuntimeId>),
}

/// Those who wait for a slot: by priority, and within a priority in the order in which they came. One who comes
/// back, because an executor would not have it, comes back to its old place.
///
/// ```
/// use tidegate_core::admission::MessagePriority::{High, Normal};
/// use tidegate_core::capacity::{RuntimeId, Serves, Ticket, WaitingLine};
///
/// let mut line = WaitingLine::default();
/// let python = RuntimeId(0);
/// line.join(Ticket(1), Normal, python);
/// line.join(Ticket(2), High, python);
/// assert_eq!(line.ahead_of(Ticket(1)), Some(1));
/// assert_eq!(line.head(&Serves::All).map(|(_, ticket)| ticket), Some(Ticket(2)));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct WaitingLine {
    lanes: BTreeMap<(MessagePriority, RuntimeId), VecDeque<(u64, Ticket)>>,
    places: BTreeMap<Ticket, (Place, RuntimeId)>,
    seq_next: u64,
}

// === impl Serves ===

impl Serves {
    /// Whether this runtime is among them.
    #[must_use]
    pub fn includes(&self, runtime: RuntimeId) -> bool {
        match self {
            Self::All => true,
            Self::Only(runtimes) => runtimes.contains(&runtime),
        }
    }
}

// === impl WaitingLine ===

impl WaitingLine {
    /// A newcomer, behind all others of its priority. One who is in the line already keeps its place.
    pub fn join(&mut self, ticket: Ticket, priority: MessagePriority, runtime: RuntimeId) -> Place {
        if let Some((place, _)) = self.places.get(&ticket) {
            return *place;
        }
        let place = Place { priority, seq: self.seq_next };
        self.seq_next += 1;
        self.put_back(ticket, place, runtime);
        place
    }

    /// One who was in the line before, at the place that it had.
    pub fn put_back(&mut self, ticket: Ticket, place: Place, runtime: RuntimeId) {
        if self.places.contains_key(&ticket) {
            return;
        }
        self.places.insert(ticket, (place, runtime));
        let lane = self.lanes.entry((place.priority, runtime)).or_default();
        let at = lane.partition_point(|(seq, _)| *seq < place.seq);
        lane.insert(at, (place.seq, ticket));
    }

    /// One leaves the line: it is placed, or not wanted any more.
    pub fn leave(&mut self, ticket: Ticket) -> Option<(Place, RuntimeId)> {
        let (place, runtime) = self.places.remove(&ticket)?;
        if let Some(lane) = self.lanes.get_mut(&(place.priority, runtime)) {
            let at = lane.partition_point(|(seq, _)| *seq < place.seq);
            if lane.get(at).is_some_and(|(_, found)| *found == ticket) {
                lane.remove(at);
            }
            if lane.is_empty() {
                self.lanes.remove(&(place.priority, runtime));
            }
        }
        Some((place, runtime))
    }

    /// The first who wants one of these runtimes.
    #[must_use]
    pub fn head(&self, serves: &Serves) -> Option<(Place, Ticket)> {
        let mut first: Option<(Place, Ticket)> = None;
        for ((priority, runtime), lane) in &self.lanes {
            if first.is_some_and(|(place, _)| place.priority < *priority) {
                break;
            }
            if !serves.includes(*runtime) {
                continue;
            }
            if let Some((seq, ticket)) = lane.front() {
                let place = Place { priority: *priority, seq: *seq };
                if first.is_none_or(|(best, _)| place < best) {
                    first = Some((place, *ticket));
                }
            }
        }
        first
    }

    /// The first of each priority and runtime.
    pub(super) fn heads(&self) -> Vec<(Place, Ticket, RuntimeId)> {
        let firsts = self.lanes.iter().filter_map(|((priority, runtime), lane)| {
            let (seq, ticket) = *lane.front()?;
            Some((Place { priority: *priority, seq }, ticket, *runtime))
        });
        firsts.collect()
    }

    /// How many are served before this one; `None` when it is not in the line.
    #[must_use]
    pub fn ahead_of(&self, ticket: Ticket) -> Option<u64> {
        let (place, _) = self.places.get(&ticket)?;
        let ahead: usize = self
            .lanes
            .iter()
            .map(|((priority, _), lane)| match priority.cmp(&place.priority) {
                std::cmp::Ordering::Less => lane.len(),
                std::cmp::Ordering::Equal => lane.partition_point(|(seq, _)| *seq < place.seq),
                std::cmp::Ordering::Greater => 0,
            })
            .sum();
        Some(ahead as u64)
    }

    /// What a ticket wants, while it is in the line.
    #[must_use]
    pub fn place_of(&self, ticket: Ticket) -> Option<(Place, RuntimeId)> {
        self.places.get(&ticket).copied()
    }

    /// Everyone in it, by ticket.
    pub fn tickets(&self) -> impl Iterator<Item = (Ticket, Place, RuntimeId)> {
        self.places.iter().map(|(ticket, (place, runtime))| (*ticket, *place, *runtime))
    }

    /// How many are in it.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether nobody is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use MessagePriority::{High, Low, Normal};

    const A: RuntimeId = RuntimeId(0);
    const B: RuntimeId = RuntimeId(1);

    fn order(line: &mut WaitingLine, serves: &Serves) -> Vec<u64> {
        let mut out = Vec::new();
        while let Some((_, ticket)) = line.head(serves) {
            line.leave(ticket);
            out.push(ticket.0);
        }
        out
    }

    #[test]
    fn priority_first_then_arrival_across_runtimes() {
        let mut line = WaitingLine::default();
        for (ticket, priority, runtime) in
            [(1, Normal, A), (2, Low, A), (3, Normal, B), (4, High, B), (5, Normal, A)]
        {
            line.join(Ticket(ticket), priority, runtime);
        }
        assert_eq!(line.ahead_of(Ticket(5)), Some(3));
        assert_eq!(line.ahead_of(Ticket(2)), Some(4));
        assert_eq!(order(&mut line.clone(), &Serves::All), [4, 1, 3, 5, 2]);
        assert_eq!(order(&mut line, &Serves::Only(vec![A])), [1, 5, 2]);
        assert_eq!(line.len(), 2);
    }

    #[test]
    fn who_comes_back_has_its_old_place() {
        let mut line = WaitingLine::default();
        for ticket in 1..=3 {
            line.join(Ticket(ticket), Normal, A);
        }
        let (place, runtime) = line.leave(Ticket(1)).unwrap();
        assert_eq!(line.head(&Serves::All).unwrap().1, Ticket(2));
        line.put_back(Ticket(1), place, runtime);
        line.put_back(Ticket(1), place, runtime);
        assert_eq!(order(&mut line, &Serves::All), [1, 2, 3]);
        assert_eq!(line.leave(Ticket(1)), None);
    }

    #[test]
    fn who_joins_twice_is_in_it_once() {
        let mut line = WaitingLine::default();
        let first = line.join(Ticket(1), Normal, A);
        line.join(Ticket(2), Normal, A);
        assert_eq!(line.join(Ticket(1), High, B), first);
        assert_eq!(order(&mut line, &Serves::All), [1, 2]);
        assert!(line.is_empty());
    }
}
