use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tidegate_core::capacity::{
    Cancelled, ExecuteRefused, ExecutorAnswer, ExecutorId, ExecutorSlots, Order, Ticket,
};
use tidegate_core::task::ExecutionKey;

const RESERVED_FOR: Duration = Duration::from_millis(300);

/// The executors themselves, which have the last word, and what they know of each attempt.
pub struct Executors {
    slots: Vec<ExecutorSlots>,
    pub maxes: Vec<u32>,
    pub alive: Vec<bool>,
    /// Attempts that were ever started: none may be a second time.
    started: BTreeSet<Ticket>,
    runs: BTreeMap<Ticket, (ExecutorId, u64)>,
    reservations: BTreeMap<Ticket, u64>,
    foreign: BTreeMap<ExecutorId, (ExecutionKey, u64)>,
    lives: u64,
}

pub fn key(ticket: Ticket) -> ExecutionKey {
    format!("task-{}@1", ticket.0).parse().unwrap()
}

// === impl Executors ===

impl Executors {
    pub fn new(maxes: &[u32]) -> Self {
        Self {
            slots: maxes.iter().map(|max| ExecutorSlots::new(*max, 0)).collect(),
            maxes: maxes.to_vec(),
            alive: vec![true; maxes.len()],
            started: BTreeSet::new(),
            runs: BTreeMap::new(),
            reservations: BTreeMap::new(),
            foreign: BTreeMap::new(),
            lives: 0,
        }
    }

    /// Answer of the executor to an order.
    pub fn hear(&mut self, order: &Order, now: Duration) -> ExecutorAnswer {
        let full = ExecutorAnswer::Full { retry_after: Duration::from_millis(500) };
        match order {
            Order::Execute { ticket, executor } => {
                if self.started.contains(ticket) {
                    return ExecutorAnswer::Accepted; // It was, and this is the same answer again.
                }
                if !self.alive[executor.0 as usize] {
                    return ExecutorAnswer::Unreachable;
                }
                let reservation = self.reservations.get(ticket).copied();
                let slots = &mut self.slots[executor.0 as usize];
                match slots.execute(&key(*ticket), 1, reservation, None, now) {
                    Ok(granted) => {
                        assert!(granted.first && self.started.insert(*ticket), "{ticket:?} twice");
                        self.runs.insert(*ticket, (*executor, granted.fence));
                        ExecutorAnswer::Accepted
                    }
                    Err(ExecuteRefused::Full) => full,
                    Err(ExecuteRefused::Gone | ExecuteRefused::Cancelled) => ExecutorAnswer::Gone,
                    Err(ExecuteRefused::Conflict) => panic!("{ticket:?} stands for another"),
                }
            }
            Order::Reserve { ticket, executor } => {
                let slots = &mut self.slots[executor.0 as usize];
                if !self.alive[executor.0 as usize] {
                    return ExecutorAnswer::Unreachable;
                }
                match slots.reserve(&key(*ticket), RESERVED_FOR, now) {
                    Ok(held) => {
                        self.reservations.insert(*ticket, held.fence);
                        ExecutorAnswer::Accepted
                    }
                    Err(_) => full,
                }
            }
            other => panic!("no executor's: {other:?}"),
        }
    }

    /// One of those that run is over.
    pub fn finish(&mut self, index: usize) -> Option<Ticket> {
        let (ticket, (executor, fence)) = nth(&self.runs, index)?;
        assert!(self.slots[executor.0 as usize].finish(&key(ticket), fence));
        self.runs.remove(&ticket);
        Some(ticket)
    }

    pub fn cancel(&mut self, ticket: Ticket) {
        match self.runs.remove(&ticket) {
            Some((executor, fence)) => {
                let slots = &mut self.slots[executor.0 as usize];
                assert_eq!(slots.cancel(&key(ticket)), Cancelled::Running { fence });
                assert!(slots.finish(&key(ticket), fence));
            }
            None => {
                for slots in &mut self.slots {
                    slots.cancel(&key(ticket));
                }
            }
        }
    }

    /// Removes the executor with all its executions.
    pub fn crash(&mut self, executor: ExecutorId) -> Vec<Ticket> {
        self.lives += 1;
        let max = self.maxes[executor.0 as usize];
        self.slots[executor.0 as usize] = ExecutorSlots::new(max, self.lives * 1_000_000);
        self.alive[executor.0 as usize] = false;
        self.foreign.remove(&executor);
        let lost: Vec<_> =
            self.runs.iter().filter(|(_, (at, _))| *at == executor).map(|(it, _)| *it).collect();
        self.runs.retain(|_, (at, _)| *at != executor);
        lost
    }

    /// Another manager takes a slot there, or gives it back.
    pub fn foreign(&mut self, executor: ExecutorId, now: Duration) {
        let slots = &mut self.slots[executor.0 as usize];
        match self.foreign.remove(&executor) {
            Some((key, fence)) => assert!(slots.finish(&key, fence)),
            None => {
                self.lives += 1;
                let key: ExecutionKey = format!("foreign-{}@1", self.lives).parse().unwrap();
                if let Ok(granted) = slots.execute(&key, 1, None, None, now) {
                    self.foreign.insert(executor, (key, granted.fence));
                }
            }
        }
    }

    pub fn foreign_all_gone(&mut self, now: Duration) {
        for executor in self.foreign.keys().copied().collect::<Vec<_>>() {
            self.foreign(executor, now);
        }
    }

    pub fn taken(&self, executor: ExecutorId, now: Duration) -> u32 {
        let occupancy = self.slots[executor.0 as usize].occupancy(now);
        assert!(occupancy.running + occupancy.reserved <= occupancy.max);
        occupancy.running + occupancy.reserved
    }

    pub fn is_idle(&self) -> bool {
        self.runs.is_empty()
    }
}

pub fn nth<V: Copy>(map: &BTreeMap<Ticket, V>, index: usize) -> Option<(Ticket, V)> {
    let at = index.checked_rem(map.len())?;
    map.iter().nth(at).map(|(ticket, value)| (*ticket, *value))
}
