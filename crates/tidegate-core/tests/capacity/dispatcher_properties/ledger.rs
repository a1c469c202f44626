use std::collections::{BTreeMap, VecDeque};
use tidegate_core::capacity::{ExecutorId, LeaseAnswer, Order, Ticket};

/// A ledger, as plain as can be: who holds which slot, and who waits in which order. It is asked over one
/// connection, so that what is said first is heard first.
#[derive(Debug, Default)]
pub struct LedgerModel {
    holders: BTreeMap<Ticket, ExecutorId>,
    line: Vec<(Ticket, Vec<ExecutorId>)>,
    asked: VecDeque<Order>,
    pub replies: VecDeque<(Ticket, LeaseAnswer)>,
}

// === impl LedgerModel ===

impl LedgerModel {
    pub fn ask(&mut self, order: Order) {
        self.asked.push_back(order);
    }

    /// Hears the next. When it is not available, it may have done what was asked all the same.
    pub fn hear(&mut self, maxes: &[u32], available: bool) {
        match self.asked.pop_front() {
            Some(Order::Unlease { ticket }) => {
                self.holders.remove(&ticket);
                self.line.retain(|(other, _)| *other != ticket);
            }
            Some(Order::Lease { ticket, executors }) => {
                assert!(!executors.is_empty(), "asked for a slot of nobody");
                let answer = self.lease(ticket, executors, maxes);
                let answer = if available { answer } else { LeaseAnswer::Unavailable };
                self.replies.push_back((ticket, answer));
            }
            _ => {}
        }
    }

    fn lease(&mut self, ticket: Ticket, wanted: Vec<ExecutorId>, maxes: &[u32]) -> LeaseAnswer {
        if let Some(executor) = self.holders.get(&ticket) {
            return LeaseAnswer::Granted(*executor);
        }
        let ahead = self.line.iter().take_while(|(other, _)| *other != ticket);
        let ahead: Vec<_> = ahead.flat_map(|(_, wanted)| wanted.iter().copied()).collect();
        let free = wanted.iter().copied().find(|id| {
            let held = self.holders.values().filter(|at| *at == id).count();
            held < maxes[id.0 as usize] as usize && !ahead.contains(id)
        });
        match free {
            Some(executor) => {
                self.line.retain(|(other, _)| *other != ticket);
                self.holders.insert(ticket, executor);
                LeaseAnswer::Granted(executor)
            }
            None => {
                match self.line.iter_mut().find(|(other, _)| *other == ticket) {
                    Some((_, old)) => *old = wanted,
                    None => self.line.push((ticket, wanted)),
                }
                LeaseAnswer::Waiting
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.holders.is_empty() && self.line.is_empty()
    }

    pub fn is_quiet(&self) -> bool {
        self.asked.is_empty() && self.replies.is_empty()
    }
}
