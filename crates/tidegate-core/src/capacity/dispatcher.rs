use super::fleet::Fleet;
use super::line::{Place, RuntimeId, WaitingLine};
use super::order::{Answer, LeaseAnswer, Order};
use super::placement::{Placement, Protocol, Step, Strategy, World};
use super::{ExecutorId, Serves, Ticket};
use crate::admission::MessagePriority;
use std::collections::BTreeMap;
use std::time::Duration;

/// How long an executor that nobody could reach is left alone, unless it is seen to be up before.
const UNREACHABLE_PAUSE: Duration = Duration::from_secs(1);
/// How long a ledger that can't be asked is left alone.
const LEDGER_PAUSE: Duration = Duration::from_millis(200);

/// Decides which waiting attempt goes to which executor, and when. It is told what happens, and says what to do;
/// it neither sends nor waits, so that the server and the simulator run the same one.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::admission::MessagePriority::Normal;
/// use tidegate_core::capacity::{
///     Answer, Dispatcher, ExecutorId, Order, Placement, RuntimeId, Serves, Ticket,
/// };
///
/// let (now, python, executor) = (Duration::ZERO, RuntimeId(0), ExecutorId(0));
/// let mut dispatcher = Dispatcher::new(Placement::Pull);
/// dispatcher.executor_up(executor, 1, Serves::All);
/// dispatcher.submit(Ticket(1), Normal, python);
/// dispatcher.submit(Ticket(2), Normal, python);
/// let orders = dispatcher.orders(now, &mut || 0);
/// assert_eq!(orders, [Order::Execute { ticket: Ticket(1), executor }]);
/// dispatcher.answered(Ticket(1), Answer::Accepted, now);
/// assert!(dispatcher.orders(now, &mut || 0).is_empty(), "the other waits, and occupies nobody");
/// dispatcher.finished(Ticket(1));
/// assert_eq!(dispatcher.orders(now, &mut || 0).len(), 1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dispatcher {
    strategy: Strategy,
    world: World,
    placed: BTreeMap<Ticket, Placing>,
    ledger_after: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Placing {
    place: Place,
    runtime: RuntimeId,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// Asks the ledger. What it will say is out of date, when it has changed since it was asked.
    Leasing { changed: bool },
    /// Has a place in the ledger's line, or may have one.
    InLedgerLine,
    /// Asks an executor to keep a slot.
    Reserving(ExecutorId),
    /// On its way to an executor.
    Sent { to: ExecutorId, leased: bool },
    /// An executor has it.
    Runs { at: ExecutorId, leased: bool },
}

// === impl Dispatcher ===

impl Dispatcher {
    /// A dispatcher without executors.
    #[must_use]
    pub fn new(placement: Placement) -> Self {
        Self {
            strategy: Strategy::new(placement),
            world: World {
                line: WaitingLine::default(),
                fleet: Fleet::default(),
                leasing: BTreeMap::new(),
            },
            placed: BTreeMap::new(),
            ledger_after: None,
        }
    }

    /// An attempt waits for a slot. One that waits already, or has been placed, stays as it is.
    pub fn submit(&mut self, ticket: Ticket, priority: MessagePriority, runtime: RuntimeId) {
        if self.placed.contains_key(&ticket) || self.world.line.place_of(ticket).is_some() {
            return;
        }
        let place = self.world.line.join(ticket, priority, runtime);
        self.strategy.came(ticket, place, runtime);
    }

    /// An attempt is not wanted any more, wherever it is. With what is to be undone at the ledger.
    pub fn withdraw(&mut self, ticket: Ticket) -> Option<Order> {
        self.world.line.leave(ticket);
        self.strategy.forget(ticket);
        self.end(ticket)
    }

    /// An executor answers, has so many slots and these runtimes.
    pub fn executor_up(&mut self, id: ExecutorId, max: u32, serves: Serves) {
        // Whoever waits for it may have to look for another, when it can't run the same any more.
        if self.world.fleet.get(id).is_some_and(|belief| belief.serves != serves) {
            self.strategy.lost_executor(id);
        }
        self.world.fleet.up(id, max, serves);
        self.strategy.found_executor();
    }

    /// An executor does not answer. Attempts that were sent there stay where they are until more is known of them.
    pub fn executor_down(&mut self, id: ExecutorId) {
        self.world.fleet.change(id, |belief| belief.up = false);
        self.strategy.lost_executor(id);
    }

    /// What an executor says of itself: so many slots taken. `changes` is what [`changes`](Self::changes) said
    /// when it was asked: a report from before something changed says nothing of others.
    pub fn reported(&mut self, id: ExecutorId, taken: u32, changes: u64) {
        if self.world.fleet.get(id).is_some_and(|belief| belief.changes == changes) {
            self.world.fleet.change(id, |belief| {
                belief.foreign = taken.saturating_sub(belief.ours);
                if taken < belief.max {
                    belief.full_until = None;
                }
            });
        }
    }

    /// What to give to [`reported`](Self::reported) with the answer to a question that is asked now.
    #[must_use]
    pub fn changes(&self, id: ExecutorId) -> u64 {
        self.world.fleet.get(id).map_or(0, |belief| belief.changes)
    }

    /// What an executor said to an attempt that was sent to it. Each order is answered once: when an answer was
    /// lost, by what the executor says when it is asked what became of the attempt. With what is to be undone at
    /// the ledger.
    pub fn answered(&mut self, ticket: Ticket, answer: Answer, now: Duration) -> Option<Order> {
        let Some(Stage::Sent { to, leased }) = self.placed.get(&ticket).map(|it| it.stage) else {
            return None;
        };
        match answer {
            Answer::Accepted => {
                if let Some(placing) = self.placed.get_mut(&ticket) {
                    placing.stage = Stage::Runs { at: to, leased };
                }
                None
            }
            Answer::Gone => self.send_back(ticket),
            Answer::Full { retry_after } => {
                let undo = self.send_back(ticket);
                self.refused(to, now.saturating_add(retry_after));
                undo
            }
            Answer::Unreachable => {
                let undo = self.send_back(ticket);
                self.unreachable(to, now);
                undo
            }
        }
    }

    /// What an executor said to the reservation that an attempt asked for.
    pub fn reserved(&mut self, ticket: Ticket, answer: Answer, now: Duration) -> Option<Order> {
        let Some(Stage::Reserving(executor)) = self.placed.get(&ticket).map(|it| it.stage) else {
            return None;
        };
        match answer {
            Answer::Accepted => {
                if let Some(placing) = self.placed.get_mut(&ticket) {
                    placing.stage = Stage::Sent { to: executor, leased: false };
                }
                return Some(Order::Execute { ticket, executor });
            }
            Answer::Gone => {}
            Answer::Full { retry_after } => {
                self.refused(executor, now.saturating_add(retry_after));
            }
            Answer::Unreachable => self.unreachable(executor, now),
        }
        self.send_back(ticket);
        None
    }

    /// What the ledger said to an attempt. With what to do next.
    pub fn leased(&mut self, ticket: Ticket, answer: LeaseAnswer, now: Duration) -> Option<Order> {
        let placing = self.placed.get(&ticket).copied();
        let asked =
            placing.filter(|it| matches!(it.stage, Stage::Leasing { .. } | Stage::InLedgerLine));
        let Some(placing) = asked else {
            // It was withdrawn while the ledger was asked; what the ledger gave goes back. But the second of two
            // answers takes nothing from one that has its slot.
            return (placing.is_none()
                && matches!(answer, LeaseAnswer::Granted(_) | LeaseAnswer::Waiting))
            .then_some(Order::Unlease { ticket });
        };
        match answer {
            LeaseAnswer::Granted(executor) => {
                self.asks_no_more(placing.runtime);
                self.occupy(executor);
                let stage = Stage::Sent { to: executor, leased: true };
                self.placed.insert(ticket, Placing { stage, ..placing });
                Some(Order::Execute { ticket, executor })
            }
            LeaseAnswer::Waiting => {
                self.placed.insert(ticket, Placing { stage: Stage::InLedgerLine, ..placing });
                // What freed a slot in the meantime may have been the last that ever does.
                match placing.stage {
                    Stage::Leasing { changed: true } => self.ask_again(ticket, now),
                    _ => None,
                }
            }
            LeaseAnswer::Unavailable => {
                self.ledger_after = Some(now.saturating_add(LEDGER_PAUSE));
                // It may have given the slot all the same. So nobody else asks in its place, and it asks again.
                self.placed.insert(ticket, Placing { stage: Stage::InLedgerLine, ..placing });
                None
            }
        }
    }

    /// Slots may have come free in the ledger, or time goes by: those in its line ask again, in their order, which
    /// also keeps their places there. Those for whom no executor is left come back to the manager's own line.
    pub fn ledger_changed(&mut self, now: Duration) -> Vec<Order> {
        let in_line = self.placed.iter().filter(|(_, it)| it.stage == Stage::InLedgerLine);
        let mut waiting: Vec<_> = in_line.map(|(ticket, it)| (it.place, *ticket)).collect();
        waiting.sort_unstable();
        for placing in self.placed.values_mut() {
            if let Stage::Leasing { changed } = &mut placing.stage {
                *changed = true;
            }
        }
        waiting.into_iter().filter_map(|(_, ticket)| self.ask_again(ticket, now)).collect()
    }

    fn ask_again(&mut self, ticket: Ticket, now: Duration) -> Option<Order> {
        let placing = self.placed.get_mut(&ticket)?;
        let open = self.world.fleet.open(placing.runtime, now);
        let executors: Vec<_> = open.map(|(id, _)| id).collect();
        if executors.is_empty() {
            return self.send_back(ticket);
        }
        placing.stage = Stage::Leasing { changed: false };
        Some(Order::Lease { ticket, executors })
    }

    /// An attempt is over, or lost for good: its slot is free. With what is to be undone at the ledger.
    pub fn finished(&mut self, ticket: Ticket) -> Option<Order> {
        self.end(ticket)
    }

    /// An attempt that another life of this manager, or another manager, has placed: it holds a slot there.
    pub fn resume(
        &mut self,
        ticket: Ticket,
        executor: ExecutorId,
        place: Place,
        runtime: RuntimeId,
    ) {
        if self.placed.contains_key(&ticket) {
            return;
        }
        self.world.line.leave(ticket);
        self.strategy.forget(ticket);
        self.occupy(executor);
        let stage = Stage::Runs { at: executor, leased: false };
        self.placed.insert(ticket, Placing { place, runtime, stage });
    }

    /// Everything that is to be done now. `chance` is a stream of random numbers.
    pub fn orders(&mut self, now: Duration, chance: &mut dyn FnMut() -> u64) -> Vec<Order> {
        let mut orders = Vec::new();
        if self.strategy.protocol() == Protocol::Leased {
            match self.ledger_after {
                Some(after) if now < after => return orders,
                Some(_) => {
                    self.ledger_after = None;
                    orders = self.ledger_changed(now);
                }
                None => {}
            }
        }
        while let Some(Step { ticket, executors }) = self.strategy.next(&self.world, now, chance) {
            let Some((place, runtime)) = self.world.line.leave(ticket) else { break };
            self.strategy.forget(ticket);
            let first = executors.first().copied();
            let (stage, order) = match (self.strategy.protocol(), first) {
                (_, None) => break,
                (Protocol::Leased, _) => {
                    *self.world.leasing.entry(runtime).or_default() += 1;
                    (Stage::Leasing { changed: false }, Order::Lease { ticket, executors })
                }
                (Protocol::Reserved, Some(executor)) => {
                    self.occupy(executor);
                    (Stage::Reserving(executor), Order::Reserve { ticket, executor })
                }
                (Protocol::Direct, Some(executor)) => {
                    self.occupy(executor);
                    let stage = Stage::Sent { to: executor, leased: false };
                    (stage, Order::Execute { ticket, executor })
                }
            };
            self.placed.insert(ticket, Placing { place, runtime, stage });
            orders.push(order);
        }
        orders
    }

    /// When [`orders`](Self::orders) may have something to say although nothing has happened.
    #[must_use]
    pub fn next_wake(&self, now: Duration) -> Option<Duration> {
        let ledger = self.ledger_after.filter(|after| *after > now);
        if self.world.line.is_empty() {
            return ledger;
        }
        self.world.fleet.next_open(now).into_iter().chain(ledger).min()
    }

    /// How many are served before a waiting attempt; `None` when it does not wait.
    #[must_use]
    pub fn ahead_of(&self, ticket: Ticket) -> Option<u64> {
        match self.placed.get(&ticket).map(|placing| placing.stage) {
            Some(Stage::Leasing { .. } | Stage::InLedgerLine | Stage::Reserving(_)) => Some(0),
            Some(_) => None,
            None => self.world.line.ahead_of(ticket),
        }
    }

    /// How many wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.world.line.len()
    }

    /// What is believed of the executors.
    #[must_use]
    pub fn fleet(&self) -> &Fleet {
        &self.world.fleet
    }

    /// Who waits.
    #[must_use]
    pub fn line(&self) -> &WaitingLine {
        &self.world.line
    }

    /// Also of an executor that was not heard of yet: what is there counts when it comes.
    fn occupy(&mut self, executor: ExecutorId) {
        self.world.fleet.change(executor, |belief| {
            belief.ours += 1;
            belief.changes += 1;
        });
    }

    fn asks_no_more(&mut self, runtime: RuntimeId) {
        if let Some(asking) = self.world.leasing.get_mut(&runtime) {
            *asking -= 1;
            if *asking == 0 {
                self.world.leasing.remove(&runtime);
            }
        }
    }

    fn vacate(&mut self, executor: ExecutorId) {
        self.world.fleet.change(executor, |belief| {
            belief.ours = belief.ours.saturating_sub(1);
            belief.changes += 1;
        });
    }

    fn refused(&mut self, executor: ExecutorId, until: Duration) {
        self.world.fleet.change(executor, |belief| belief.full_until = Some(until));
    }

    fn unreachable(&mut self, executor: ExecutorId, now: Duration) {
        self.refused(executor, now.saturating_add(UNREACHABLE_PAUSE));
        self.strategy.lost_executor(executor);
    }

    /// An attempt that was not taken goes back to its old place.
    fn send_back(&mut self, ticket: Ticket) -> Option<Order> {
        let placing = self.placed.get(&ticket).copied()?;
        let undo = self.end(ticket);
        self.world.line.put_back(ticket, placing.place, placing.runtime);
        self.strategy.came(ticket, placing.place, placing.runtime);
        undo
    }

    fn end(&mut self, ticket: Ticket) -> Option<Order> {
        let placing = self.placed.remove(&ticket)?;
        match placing.stage {
            Stage::Leasing { .. } | Stage::InLedgerLine => {
                self.asks_no_more(placing.runtime);
                return Some(Order::Unlease { ticket });
            }
            Stage::Reserving(executor) => self.vacate(executor),
            Stage::Sent { to, leased } | Stage::Runs { at: to, leased } => {
                self.vacate(to);
                // Whoever frees a slot knows better than the refusal of before.
                if matches!(placing.stage, Stage::Runs { .. }) {
                    self.world.fleet.change(to, |belief| belief.full_until = None);
                }
                return leased.then_some(Order::Unlease { ticket });
            }
        }
        None
    }
}
