//! The life of an attempt in a manager, as in the real one: an attempt is sent once; after a lost reply the
//! manager follows it; an attempt that its executor does not know is deleted there, and the next attempt has
//! another number.

use super::ledger::SimLedger;
use super::manager::{Drive, RETRY_AFTER, RUNTIME, spec};
use super::simulation::{Event, LedgerRequest, Managers};
use crate::agenda::Time;
use crate::executors::ExecutorFlaw;
use crate::executors::fleet::{Caller, Key, Operation, Reply, Request};
use crate::executors::setup::nanos;
use std::time::Duration;
use tidegate_core::admission::MessagePriority::Normal;
use tidegate_core::capacity::{
    ExecutorAnswer, ExecutorId, LeaseAnswer, Order, Placement, SlotLease, Ticket,
};
use tidegate_core::task::{EndReason, Ending, TaskEvent, TaskOutcome};

/// Between two tries to reach an executor.
const RETRY_EVERY: Duration = Duration::from_millis(250);
/// Beyond the lease until an attempt counts as lost.
const LEASE_MARGIN: Duration = Duration::from_secs(2);

// === impl Managers ===

impl Managers {
    /// Executes an order of a dispatcher.
    pub fn obey(&mut self, manager: usize, order: Order) {
        match order {
            Order::Execute { ticket, executor } => self.send_attempt(manager, ticket, executor),
            Order::Reserve { ticket, executor } => {
                let Some(from) = self.caller(manager, ticket, 1) else { return };
                self.ask(from, executor, Operation::Reserve);
            }
            Order::Lease { ticket, executors } => {
                let Some(from) = self.caller(manager, ticket, 1) else { return };
                let Some(holder) = from.key.name() else { return };
                self.send(Event::LedgerHeard(from, LedgerRequest::Lease { holder, executors }));
            }
            Order::Unlease { ticket } => {
                let Some(from) = self.caller(manager, ticket, 1) else { return };
                let lease =
                    self.managers[manager].book.get_mut(&ticket).and_then(|it| it.lease.take());
                let ask = match (lease, from.key.name()) {
                    (Some(lease), _) => LedgerRequest::Release(lease),
                    (None, Some(holder)) => LedgerRequest::Withdraw(holder),
                    (None, None) => return,
                };
                self.send(Event::LedgerHeard(from, ask));
            }
        }
    }

    /// Returns the caller for the attempt `after` the latest of a task.
    fn caller(&self, manager: usize, ticket: Ticket, after: u32) -> Option<Caller> {
        let it = &self.managers[manager];
        let attempt = it.book.get(&ticket)?.state.attempt + after;
        Some(Caller { manager, incarnation: it.incarnation, key: Key { ticket, attempt } })
    }

    /// Advances a task's state and persists it.
    fn step(&mut self, manager: usize, ticket: Ticket, event: &TaskEvent, keep: bool) {
        let now_ms = self.now / 1_000_000;
        let it = &mut self.managers[manager];
        let Some(entry) = it.book.get_mut(&ticket) else { return };
        match entry.state.after(event, &spec(), now_ms) {
            Ok(mut next) => {
                // Several steps may be kept as one.
                let kept = it.store.get(&ticket);
                next.version = kept.map_or(next.version, |kept| kept.version + 1);
                entry.state = next;
                if keep {
                    self.invariants.keeps(kept, &entry.state);
                    it.store.insert(ticket, entry.state.clone());
                }
            }
            Err(stale) => {
                let found = format!("{event:?} of task {} when {stale:?}", ticket.0);
                self.invariants.violation("a manager's own steps follow each other", found);
            }
        }
    }

    fn send_attempt(&mut self, manager: usize, ticket: Ticket, executor: ExecutorId) {
        let placing = TaskEvent::Dispatching { executor: executor.0.to_string().into() };
        let keep = self.flaw != Some(ExecutorFlaw::ReusesNumbers);
        self.step(manager, ticket, &placing, keep);
        self.invariants.idle(executor, &self.fleet);
        let Some(from) = self.caller(manager, ticket, 0) else { return };
        let drive = Drive { at: executor, ordered: self.now, heard: self.now };
        if let Some(entry) = self.managers[manager].book.get_mut(&ticket) {
            entry.drive = Some(drive);
        }
        self.ask(from, executor, Operation::Execute);
    }

    /// Handles the reply to a request.
    pub fn replied(&mut self, request: Request, reply: Reply) {
        let Request { from, to, ask, .. } = request;
        let Caller { manager, incarnation, key } = from;
        let it = &self.managers[manager];
        if it.down > 0 || it.incarnation != incarnation {
            return;
        }
        match ask {
            Operation::Capacity { changes } => return self.probed(manager, to, reply, changes),
            Operation::Reserve => return self.reserved(from, to, reply),
            _ => {}
        }
        let driven = it.book.get(&key.ticket).filter(|entry| entry.state.attempt == key.attempt);
        let Some(drive) = driven.and_then(|entry| entry.drive) else { return };
        match ask {
            Operation::Execute => self.answered(from, drive, reply),
            Operation::Follow => self.followed(from, drive, reply),
            _ => self.deleted(from, drive, reply),
        }
    }

    fn answered(&mut self, from: Caller, drive: Drive, reply: Reply) {
        let Caller { manager, key, .. } = from;
        let now = Duration::from_nanos(self.now);
        let answer = match reply {
            Reply::Taken { .. } => ExecutorAnswer::Accepted,
            Reply::Full => ExecutorAnswer::Full { retry_after: RETRY_AFTER },
            Reply::Refused => ExecutorAnswer::Unreachable,
            Reply::Silence if self.flaw == Some(ExecutorFlaw::SendsAgain) => {
                return self.ask(from, drive.at, Operation::Execute);
            }
            // Not sent again: an executor that was started anew meanwhile would start it a second time.
            Reply::Silence => ExecutorAnswer::Accepted,
            _ => ExecutorAnswer::Gone,
        };
        if let Reply::Taken { fence } = reply {
            self.invariants.provisions(key);
            let accepted = TaskEvent::Accepted { attempt: key.attempt, fence };
            self.step(manager, key.ticket, &accepted, false);
        }
        if answer != ExecutorAnswer::Accepted {
            self.step(manager, key.ticket, &TaskEvent::Refused { attempt: key.attempt }, true);
            if let Some(entry) = self.managers[manager].book.get_mut(&key.ticket) {
                entry.drive = None;
            }
        }
        let undo = self.managers[manager].dispatcher.answered(key.ticket, answer, now);
        if answer == ExecutorAnswer::Accepted {
            self.ask(from, drive.at, Operation::Follow);
        }
        self.go_on(manager, undo);
    }

    fn followed(&mut self, from: Caller, drive: Drive, reply: Reply) {
        let Caller { manager, key: Key { ticket, attempt }, .. } = from;
        match reply {
            Reply::Over { stopped, .. } => {
                let (outcome, reason) = match stopped {
                    false => (TaskOutcome::Succeeded, EndReason::Exit),
                    true => (TaskOutcome::Cancelled, EndReason::LeaseExpired),
                };
                let ending = Ending::new(outcome, reason);
                self.over(from, drive, &TaskEvent::Ended { attempt, ending });
            }
            Reply::Runs { fence } => {
                if let Some(entry) = self.managers[manager].book.get_mut(&ticket) {
                    entry.drive = Some(Drive { heard: self.now, ..drive });
                    if entry.state.started_ms.is_none() {
                        self.invariants.provisions(from.key);
                        self.step(manager, ticket, &TaskEvent::Accepted { attempt, fence }, false);
                    }
                }
                self.ask(from, drive.at, Operation::Follow);
            }
            // Started anew, it has forgotten everything, and what it ran is gone. A request of ours that is still
            // on its way must not start it after all.
            Reply::Nothing => self.ask(from, drive.at, Operation::Delete),
            _ => self.lost_or_again(from, drive),
        }
    }

    fn deleted(&mut self, from: Caller, drive: Drive, reply: Reply) {
        match reply {
            Reply::Deleted => self.lose(from, drive),
            _ => self.lost_or_again(from, drive),
        }
    }

    fn lost_or_again(&mut self, from: Caller, drive: Drive) {
        match self.now - drive.heard >= nanos(self.lease + LEASE_MARGIN) {
            true => self.lose(from, drive),
            false => self.agenda.plan(self.now + nanos(RETRY_EVERY), Event::AskAgain(from)),
        }
    }

    pub fn ask_again(&mut self, from: Caller) {
        let it = &self.managers[from.manager];
        let entry = it
            .book
            .get(&from.key.ticket)
            .filter(|_| it.down == 0 && it.incarnation == from.incarnation);
        if let Some(drive) = entry.and_then(|entry| entry.drive) {
            self.ask(from, drive.at, Operation::Follow);
        }
    }

    fn lose(&mut self, from: Caller, drive: Drive) {
        self.over(from, drive, &TaskEvent::Lost { attempt: from.key.attempt });
    }

    /// Ends an attempt: the task is over, or queued again.
    fn over(&mut self, from: Caller, drive: Drive, event: &TaskEvent) {
        let Caller { manager, key: Key { ticket, .. }, .. } = from;
        let it = &mut self.managers[manager];
        it.estimate.record(Duration::from_nanos(self.now - drive.ordered));
        let undo = it.dispatcher.finished(ticket);
        // Over one connection the ledger gets the release before the next request.
        let has_lease = it.book.get(&ticket).is_some_and(|entry| entry.lease.is_some());
        match undo {
            Some(undo) => self.obey(manager, undo),
            None if has_lease => self.obey(manager, Order::Unlease { ticket }),
            None => {}
        }
        if self.placement == Placement::Semaphore {
            self.ask_ledger_again(manager);
        }
        self.step(manager, ticket, event, true);
        let it = &mut self.managers[manager];
        if let Some(entry) = it.book.get_mut(&ticket) {
            entry.drive = None;
            if entry.state.status.is_over() {
                it.book.remove(&ticket);
                it.store.remove(&ticket);
                self.invariants.ends(ticket);
                self.measure.over += 1;
            } else {
                self.enqueue(manager, ticket);
            }
        }
        self.go_on(manager, None);
    }

    /// Queues a task for a slot: now, or after its backoff.
    pub fn enqueue(&mut self, manager: usize, ticket: Ticket) {
        let Some(from) = self.caller(manager, ticket, 0) else { return };
        let it = &mut self.managers[manager];
        let state = it.book.get(&ticket).map(|entry| &entry.state);
        let not_before = state.and_then(|state| state.not_before_ms).unwrap_or(0) * 1_000_000;
        if not_before > self.now {
            self.agenda.plan(not_before, Event::Later(from));
        } else {
            it.dispatcher.submit(ticket, Normal, RUNTIME);
        }
    }

    pub fn later(&mut self, from: Caller) {
        let it = &self.managers[from.manager];
        if it.down == 0 && it.incarnation == from.incarnation {
            self.enqueue(from.manager, from.key.ticket);
            self.go_on(from.manager, None);
        }
    }

    fn reserved(&mut self, from: Caller, to: ExecutorId, reply: Reply) {
        let answer = match reply {
            Reply::Taken { .. } => ExecutorAnswer::Accepted,
            Reply::Full => ExecutorAnswer::Full { retry_after: RETRY_AFTER },
            // What may have been reserved runs out by itself.
            _ => ExecutorAnswer::Unreachable,
        };
        let Caller { manager, key, .. } = from;
        let now = Duration::from_nanos(self.now);
        let next = self.managers[manager].dispatcher.reserved(key.ticket, answer, now);
        if next.is_none() && answer == ExecutorAnswer::Accepted {
            // The task was cancelled: its reservation is deleted so that no other task waits for it.
            self.ask(from, to, Operation::Delete);
        }
        self.go_on(manager, next);
    }

    pub fn ledger_heard(&mut self, from: Caller, ask: LedgerRequest) {
        let (ticket, now) = (from.key.ticket, self.now);
        self.measure.decisions += 1;
        let next = match ask {
            LedgerRequest::Lease { holder, executors } => {
                let lease = self.ledger.lease(ticket, &holder, &executors, now);
                return self.send(Event::LedgerReply(from, lease));
            }
            LedgerRequest::Regain { holder, at } => {
                if let Some(lease) = self.ledger.regain(ticket, &holder, at, now) {
                    self.send(Event::Regained(from, lease));
                }
                return;
            }
            LedgerRequest::Renew { lease, at } => {
                if !self.ledger.renew(&lease, now)
                    && let Some(lease) = self.ledger.regain(ticket, &lease.holder, at, now)
                {
                    self.send(Event::Regained(from, lease));
                }
                return;
            }
            LedgerRequest::Release(lease) => self.ledger.release(&lease, now),
            LedgerRequest::Withdraw(holder) => self.ledger.withdraw(&holder, now),
        };
        // Its reply changes nothing, but it is one.
        self.measure.message(now);
        // Who gives back asks again by itself.
        if let Some(manager) = next.map(|first| self.manager_of(first))
            && manager != from.manager
        {
            self.send(Event::LedgerChanged { manager });
        }
    }

    pub fn leased(&mut self, from: Caller, lease: Option<SlotLease>) {
        let Caller { manager, incarnation, key: Key { ticket, .. } } = from;
        let it = &mut self.managers[manager];
        if it.down > 0 || it.incarnation != incarnation {
            return;
        }
        let answer = match lease.as_ref().and_then(SimLedger::executor) {
            Some(executor) => LeaseAnswer::Granted(executor),
            None => LeaseAnswer::Waiting,
        };
        if let (Some(entry), Some(lease)) = (it.book.get_mut(&ticket), lease) {
            entry.lease = Some(lease);
        }
        let now = Duration::from_nanos(self.now);
        let next = it.dispatcher.leased(ticket, answer, now);
        self.go_on(manager, next);
    }

    pub fn regained(&mut self, from: Caller, lease: SlotLease) {
        let it = &mut self.managers[from.manager];
        let alive = it.down == 0 && it.incarnation == from.incarnation;
        match it.book.get_mut(&from.key.ticket).filter(|entry| alive && entry.drive.is_some()) {
            Some(entry) => entry.lease = Some(lease),
            None if alive => self.send(Event::LedgerHeard(from, LedgerRequest::Release(lease))),
            None => {}
        }
    }

    pub fn ask_ledger_again(&mut self, manager: usize) {
        let now = Duration::from_nanos(self.now);
        if self.managers[manager].down > 0 {
            return;
        }
        for order in self.managers[manager].dispatcher.ledger_changed(now) {
            self.obey(manager, order);
        }
    }
}

/// Returns the longest time until nothing can be under way any more.
pub fn patience(unended: u64, takes: Time, executors: u32) -> Time {
    // Ten losses with their pauses (3 min) and the leases that have to end before (17 s each, and a request of
    // 10 s), each twice; and what waits, twenty times as slow as it should be.
    const LOSSES: Duration = Duration::from_secs(2 * (190 + 10 * 27));
    let work = unended.saturating_mul(takes) / u64::from(executors.max(1));
    nanos(LOSSES) + 20 * takes + 20 * work
}
