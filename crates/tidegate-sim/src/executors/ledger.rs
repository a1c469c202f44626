use std::collections::{BTreeMap, BTreeSet, VecDeque};
use tidegate_core::capacity::{ExecutorId, LeaseAnswer, Ticket};

/// A shared ledger of slots, one for each executor: who holds which, and who waits, first come first served.
/// Everybody here can use every executor, so that the first in line is the next to be served.
#[derive(Debug)]
pub(super) struct SimLedger {
    free: BTreeSet<ExecutorId>,
    holders: BTreeMap<Ticket, ExecutorId>,
    line: VecDeque<Ticket>,
}

// === impl SimLedger ===

impl SimLedger {
    pub(super) fn new(executors: u32) -> Self {
        let free = (0..executors).map(ExecutorId).collect();
        Self { free, holders: BTreeMap::new(), line: VecDeque::new() }
    }

    pub(super) fn lease(&mut self, ticket: Ticket, wanted: &[ExecutorId]) -> LeaseAnswer {
        if let Some(executor) = self.holders.get(&ticket) {
            return LeaseAnswer::Granted(*executor);
        }
        let place = self.line.iter().position(|other| *other == ticket);
        let ahead = place.unwrap_or(self.line.len());
        let free = wanted.iter().copied().filter(|id| self.free.contains(id)).nth(ahead);
        let Some(executor) = free else {
            if place.is_none() {
                self.line.push_back(ticket);
            }
            return LeaseAnswer::Waiting;
        };
        if let Some(place) = place {
            self.line.remove(place);
        }
        self.free.remove(&executor);
        self.holders.insert(ticket, executor);
        LeaseAnswer::Granted(executor)
    }

    /// A slot comes back, or a place in the line. With who is first in the line.
    pub(super) fn unlease(&mut self, ticket: Ticket) -> Option<Ticket> {
        if let Some(executor) = self.holders.remove(&ticket) {
            self.free.insert(executor);
        }
        self.line.retain(|other| *other != ticket);
        self.line.front().copied()
    }
}
