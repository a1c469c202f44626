use super::fleet::Fleet;
use super::order::{ExecutorAnswer, LeaseAnswer, Order};
use super::placement::{DispatchState, Placement, Protocol, Selection, Strategy};
use super::wait_queue::{QueuePosition, RuntimeId, WaitQueue};
use super::{ExecutorId, ExecutorRuntimes, Ticket};
use crate::admission::MessagePriority;
use std::collections::BTreeMap;
use std::time::Duration;

/// Pause before an unreachable executor is asked again, unless a health check finds it up sooner.
const UNREACHABLE_PAUSE: Duration = Duration::from_secs(1);
/// Pause before an unavailable ledger is asked again.
const LEDGER_PAUSE: Duration = Duration::from_millis(200);

/// Decides which queued attempt goes to which executor, and when. The caller reports events and carries out the
/// returned orders; the dispatcher neither sends nor waits, so that the server and the simulator run the same
/// code.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::admission::MessagePriority::Normal;
/// use tidegate_core::capacity::{
///     ExecutorAnswer, Dispatcher, ExecutorId, Order, Placement, RuntimeId, ExecutorRuntimes, Ticket,
/// };
///
/// let (now, python, executor) = (Duration::ZERO, RuntimeId(0), ExecutorId(0));
/// let mut dispatcher = Dispatcher::new(Placement::Pull);
/// dispatcher.executor_up(executor, 1, ExecutorRuntimes::All);
/// dispatcher.submit(Ticket(1), Normal, python);
/// dispatcher.submit(Ticket(2), Normal, python);
/// let orders = dispatcher.orders(now, &mut || 0);
/// assert_eq!(orders, [Order::Execute { ticket: Ticket(1), executor }]);
/// dispatcher.answered(Ticket(1), ExecutorAnswer::Accepted, now);
/// assert!(dispatcher.orders(now, &mut || 0).is_empty(), "the other waits, and occupies nobody");
/// dispatcher.finished(Ticket(1));
/// assert_eq!(dispatcher.orders(now, &mut || 0).len(), 1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Dispatcher {
    strategy: Strategy,
    state: DispatchState,
    dispatched: BTreeMap<Ticket, Dispatched>,
    ledger_after: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Dispatched {
    position: QueuePosition,
    runtime: RuntimeId,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Stage {
    /// The ledger has been asked. `changed`: its slots changed after the request, so the answer may be out of
    /// date.
    Leasing { changed: bool },
    /// Queued in the ledger, or possibly queued there.
    LedgerQueued,
    /// An executor has been asked to reserve a slot.
    Reserving(ExecutorId),
    /// Sent to an executor, not answered yet.
    Sent { to: ExecutorId, leased: bool },
    /// Accepted by an executor.
    Running { at: ExecutorId, leased: bool },
}

// === impl Dispatcher ===

impl Dispatcher {
    /// Creates a dispatcher without executors.
    #[must_use]
    pub fn new(placement: Placement) -> Self {
        Self {
            strategy: Strategy::new(placement),
            state: DispatchState {
                queue: WaitQueue::default(),
                fleet: Fleet::default(),
                leasing: BTreeMap::new(),
            },
            dispatched: BTreeMap::new(),
            ledger_after: None,
        }
    }

    /// Queues an attempt for a slot. Does nothing if the attempt is queued or dispatched already.
    pub fn submit(&mut self, ticket: Ticket, priority: MessagePriority, runtime: RuntimeId) {
        if self.dispatched.contains_key(&ticket) || self.state.queue.position_of(ticket).is_some() {
            return;
        }
        let position = self.state.queue.join(ticket, priority, runtime);
        self.strategy.enqueued(ticket, position, runtime);
    }

    /// Withdraws an attempt in any stage. Returns the order that releases its ledger entry, if it has one.
    pub fn withdraw(&mut self, ticket: Ticket) -> Option<Order> {
        self.state.queue.leave(ticket);
        self.strategy.dequeued(ticket);
        self.end(ticket)
    }

    /// Reports that an executor answers, with its slots and runtimes.
    pub fn executor_up(&mut self, id: ExecutorId, max: u32, serves: ExecutorRuntimes) {
        // Attempts queued for this executor may need another one if its runtimes changed.
        if self.state.fleet.get(id).is_some_and(|executor| executor.serves != serves) {
            self.strategy.executor_lost(id);
        }
        self.state.fleet.up(id, max, serves);
        self.strategy.executor_available();
    }

    /// Reports that an executor does not answer. Attempts sent to it stay dispatched until their outcome is known.
    pub fn executor_down(&mut self, id: ExecutorId) {
        self.state.fleet.change(id, |executor| executor.up = false);
        self.strategy.executor_lost(id);
    }

    /// Reports the slots in use that an executor counts itself. `changes` is the value of
    /// [`changes`](Self::changes) when the executor was asked: a report older than the last change is ignored.
    pub fn reported(&mut self, id: ExecutorId, taken: u32, changes: u64) {
        if self.state.fleet.get(id).is_some_and(|executor| executor.changes == changes) {
            self.state.fleet.change(id, |executor| {
                executor.foreign = taken.saturating_sub(executor.own);
                if taken < executor.max {
                    executor.full_until = None;
                }
            });
        }
    }

    /// Change counter to pass to [`reported`](Self::reported) with the answer to a request made now.
    #[must_use]
    pub fn changes(&self, id: ExecutorId) -> u64 {
        self.state.fleet.get(id).map_or(0, |executor| executor.changes)
    }

    /// Handles an executor's answer to an attempt sent to it. Each order is answered once; if the answer was lost,
    /// by the state that the executor reports for the attempt later. Returns the order that releases the ledger
    /// entry, if there is one.
    pub fn answered(
        &mut self,
        ticket: Ticket,
        answer: ExecutorAnswer,
        now: Duration,
    ) -> Option<Order> {
        let Some(Stage::Sent { to, leased }) =
            self.dispatched.get(&ticket).map(|attempt| attempt.stage)
        else {
            return None;
        };
        match answer {
            ExecutorAnswer::Accepted => {
                if let Some(attempt) = self.dispatched.get_mut(&ticket) {
                    attempt.stage = Stage::Running { at: to, leased };
                }
                None
            }
            ExecutorAnswer::Gone => self.requeue(ticket),
            ExecutorAnswer::Full { retry_after } => {
                let undo = self.requeue(ticket);
                self.refused(to, now.saturating_add(retry_after));
                undo
            }
            ExecutorAnswer::Unreachable => {
                let undo = self.requeue(ticket);
                self.unreachable(to, now);
                undo
            }
        }
    }

    /// Handles an executor's answer to a reservation request.
    pub fn reserved(
        &mut self,
        ticket: Ticket,
        answer: ExecutorAnswer,
        now: Duration,
    ) -> Option<Order> {
        let Some(Stage::Reserving(executor)) =
            self.dispatched.get(&ticket).map(|attempt| attempt.stage)
        else {
            return None;
        };
        match answer {
            ExecutorAnswer::Accepted => {
                if let Some(attempt) = self.dispatched.get_mut(&ticket) {
                    attempt.stage = Stage::Sent { to: executor, leased: false };
                }
                return Some(Order::Execute { ticket, executor });
            }
            ExecutorAnswer::Gone => {}
            ExecutorAnswer::Full { retry_after } => {
                self.refused(executor, now.saturating_add(retry_after));
            }
            ExecutorAnswer::Unreachable => self.unreachable(executor, now),
        }
        self.requeue(ticket);
        None
    }

    /// Handles the ledger's answer to a lease request. Returns the next order, if any.
    pub fn leased(&mut self, ticket: Ticket, answer: LeaseAnswer, now: Duration) -> Option<Order> {
        let attempt = self.dispatched.get(&ticket).copied();
        let pending = attempt
            .filter(|attempt| matches!(attempt.stage, Stage::Leasing { .. } | Stage::LedgerQueued));
        let Some(attempt) = pending else {
            // The attempt was withdrawn while the ledger was asked, so a granted lease is returned. A duplicate
            // answer does not revoke the lease of an attempt that has its slot.
            return (attempt.is_none()
                && matches!(answer, LeaseAnswer::Granted(_) | LeaseAnswer::Waiting))
            .then_some(Order::Unlease { ticket });
        };
        match answer {
            LeaseAnswer::Granted(executor) => {
                self.end_lease_request(attempt.runtime);
                self.occupy(executor);
                let stage = Stage::Sent { to: executor, leased: true };
                self.dispatched.insert(ticket, Dispatched { stage, ..attempt });
                Some(Order::Execute { ticket, executor })
            }
            LeaseAnswer::Waiting => {
                self.dispatched
                    .insert(ticket, Dispatched { stage: Stage::LedgerQueued, ..attempt });
                // A slot that freed in the meantime may be the only change notification there will be.
                match attempt.stage {
                    Stage::Leasing { changed: true } => self.retry_lease(ticket, now),
                    _ => None,
                }
            }
            LeaseAnswer::Unavailable => {
                self.ledger_after = Some(now.saturating_add(LEDGER_PAUSE));
                // The ledger may have granted the slot nevertheless: this attempt asks again, and no other
                // replaces it.
                self.dispatched
                    .insert(ticket, Dispatched { stage: Stage::LedgerQueued, ..attempt });
                None
            }
        }
    }

    /// Asks the ledger again for every attempt queued there, in queue order, because slots may be free or because
    /// their entries need a renewal. Attempts without an open executor return to the manager's own queue.
    pub fn ledger_changed(&mut self, now: Duration) -> Vec<Order> {
        let queued =
            self.dispatched.iter().filter(|(_, attempt)| attempt.stage == Stage::LedgerQueued);
        let mut waiting: Vec<_> =
            queued.map(|(ticket, attempt)| (attempt.position, *ticket)).collect();
        waiting.sort_unstable();
        for attempt in self.dispatched.values_mut() {
            if let Stage::Leasing { changed } = &mut attempt.stage {
                *changed = true;
            }
        }
        waiting.into_iter().filter_map(|(_, ticket)| self.retry_lease(ticket, now)).collect()
    }

    fn retry_lease(&mut self, ticket: Ticket, now: Duration) -> Option<Order> {
        let attempt = self.dispatched.get_mut(&ticket)?;
        let open = self.state.fleet.open(attempt.runtime, now);
        let executors: Vec<_> = open.map(|(id, _)| id).collect();
        if executors.is_empty() {
            return self.requeue(ticket);
        }
        attempt.stage = Stage::Leasing { changed: false };
        Some(Order::Lease { ticket, executors })
    }

    /// Frees the slot of an attempt that ended or is lost. Returns the order that releases its ledger entry, if it
    /// has one.
    pub fn finished(&mut self, ticket: Ticket) -> Option<Order> {
        self.end(ticket)
    }

    /// Restores an attempt that holds a slot since before a restart, or that another manager dispatched. Its
    /// executor has counted it among the slots of others.
    pub fn resume(
        &mut self,
        ticket: Ticket,
        executor: ExecutorId,
        position: QueuePosition,
        runtime: RuntimeId,
    ) {
        if self.dispatched.contains_key(&ticket) {
            return;
        }
        self.state.queue.leave(ticket);
        self.strategy.dequeued(ticket);
        self.occupy(executor);
        self.state.fleet.change(executor, |executor| {
            executor.foreign = executor.foreign.saturating_sub(1);
        });
        let stage = Stage::Running { at: executor, leased: false };
        self.dispatched.insert(ticket, Dispatched { position, runtime, stage });
    }

    /// Counts an attempt that is being sent to an executor, because its task was claimed for a slot there. Its
    /// answer is [`answered`](Self::answered).
    pub fn claimed(
        &mut self,
        ticket: Ticket,
        executor: ExecutorId,
        position: QueuePosition,
        runtime: RuntimeId,
    ) {
        if self.dispatched.contains_key(&ticket) {
            return;
        }
        self.occupy(executor);
        let stage = Stage::Sent { to: executor, leased: false };
        self.dispatched.insert(ticket, Dispatched { position, runtime, stage });
    }

    /// Returns every order that is due now. `random` is a stream of random numbers.
    pub fn orders(&mut self, now: Duration, random: &mut dyn FnMut() -> u64) -> Vec<Order> {
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
        while let Some(Selection { ticket, executors }) =
            self.strategy.next(&self.state, now, random)
        {
            let Some((position, runtime)) = self.state.queue.leave(ticket) else { break };
            self.strategy.dequeued(ticket);
            let first = executors.first().copied();
            let (stage, order) = match (self.strategy.protocol(), first) {
                (_, None) => break,
                (Protocol::Leased, _) => {
                    *self.state.leasing.entry(runtime).or_default() += 1;
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
            self.dispatched.insert(ticket, Dispatched { position, runtime, stage });
            orders.push(order);
        }
        orders
    }

    /// Time at which [`orders`](Self::orders) may return something although nothing was reported.
    #[must_use]
    pub fn next_wake(&self, now: Duration) -> Option<Duration> {
        let ledger = self.ledger_after.filter(|after| *after > now);
        if self.state.queue.is_empty() {
            return ledger;
        }
        self.state.fleet.next_open(now).into_iter().chain(ledger).min()
    }

    /// Number of attempts served before this one; `None` if it is not queued.
    #[must_use]
    pub fn ahead_of(&self, ticket: Ticket) -> Option<u64> {
        match self.dispatched.get(&ticket).map(|attempt| attempt.stage) {
            Some(Stage::Leasing { .. } | Stage::LedgerQueued | Stage::Reserving(_)) => Some(0),
            Some(_) => None,
            None => self.state.queue.ahead_of(ticket),
        }
    }

    /// Number of queued attempts.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.state.queue.len()
    }

    /// Known state of the executors.
    #[must_use]
    pub fn fleet(&self) -> &Fleet {
        &self.state.fleet
    }

    /// Queue of waiting attempts.
    #[must_use]
    pub fn queue(&self) -> &WaitQueue {
        &self.state.queue
    }

    /// Counts one attempt at an executor, also at one that has not been reported yet.
    fn occupy(&mut self, executor: ExecutorId) {
        self.state.fleet.change(executor, |executor| {
            executor.own += 1;
            executor.changes += 1;
        });
    }

    fn end_lease_request(&mut self, runtime: RuntimeId) {
        if let Some(asking) = self.state.leasing.get_mut(&runtime) {
            *asking -= 1;
            if *asking == 0 {
                self.state.leasing.remove(&runtime);
            }
        }
    }

    fn vacate(&mut self, executor: ExecutorId) {
        self.state.fleet.change(executor, |executor| {
            executor.own = executor.own.saturating_sub(1);
            executor.changes += 1;
        });
    }

    fn refused(&mut self, executor: ExecutorId, until: Duration) {
        self.state.fleet.change(executor, |executor| executor.full_until = Some(until));
    }

    fn unreachable(&mut self, executor: ExecutorId, now: Duration) {
        self.refused(executor, now.saturating_add(UNREACHABLE_PAUSE));
        self.strategy.executor_lost(executor);
    }

    /// Returns an attempt that was not accepted to its old queue position.
    fn requeue(&mut self, ticket: Ticket) -> Option<Order> {
        let attempt = self.dispatched.get(&ticket).copied()?;
        let undo = self.end(ticket);
        self.state.queue.put_back(ticket, attempt.position, attempt.runtime);
        self.strategy.enqueued(ticket, attempt.position, attempt.runtime);
        undo
    }

    fn end(&mut self, ticket: Ticket) -> Option<Order> {
        let attempt = self.dispatched.remove(&ticket)?;
        match attempt.stage {
            Stage::Leasing { .. } | Stage::LedgerQueued => {
                self.end_lease_request(attempt.runtime);
                return Some(Order::Unlease { ticket });
            }
            Stage::Reserving(executor) => self.vacate(executor),
            Stage::Sent { to, leased } | Stage::Running { at: to, leased } => {
                self.vacate(to);
                // A slot freed here is newer information than an earlier refusal.
                if matches!(attempt.stage, Stage::Running { .. }) {
                    self.state.fleet.change(to, |executor| executor.full_until = None);
                }
                return leased.then_some(Order::Unlease { ticket });
            }
        }
        None
    }
}
