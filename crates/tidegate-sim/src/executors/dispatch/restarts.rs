//! Restarts of managers and executors, timers, and a run from its begin until all tasks are over.

use super::driver::patience;
use super::manager::{Drive, Entry, RUNTIME};
use super::simulation::{Event, LedgerRequest, Managers};
use crate::Violation;
use crate::agenda::Time;
use crate::executors::ExecutorFlaw;
use crate::executors::fleet::{Caller, Key, Operation, Reply};
use crate::executors::measure::Measure;
use crate::executors::setup::nanos;
use crate::scenario::FaultKind;
use std::time::Duration;
use tidegate_core::admission::MessagePriority::Normal;
use tidegate_core::capacity::{ExecutorId, ExecutorRuntimes, Placement, QueuePosition, Ticket};

/// The interval at which managers ask executors for their capacity, in scenarios with faults.
const PROBE_EVERY: Duration = Duration::from_secs(1);

// === impl Managers ===

impl Managers {
    /// Runs the whole scenario, and after its load until every task is over.
    pub fn play(mut self) -> Result<Measure, Violation> {
        let horizon = self.horizon.unwrap_or_default();
        self.plan_arrival();
        self.agenda.plan(0, Event::Sample);
        for index in 0..self.faults.len() {
            let at = |s: f64| (s * 1e9) as Time;
            let fault = &self.faults[index];
            let (from, until) = (at(fault.from_s), at(fault.until_s));
            self.agenda.plan(from, Event::Fault { index, begins: true });
            self.agenda.plan(until, Event::Fault { index, begins: false });
        }
        if !self.faults.is_empty() {
            for manager in 0..self.managers.len() {
                self.plan_house(manager);
            }
        }
        let mut give_up = None;
        while let Some((now, event)) = self.agenda.next() {
            if now >= horizon && !self.arriving {
                if self.invariants.all_ended() {
                    break;
                }
                let takes = self.measure.tasks.first().map_or(0, |task| task.takes);
                let unended = self.invariants.unended();
                let end = *give_up
                    .get_or_insert_with(|| now + patience(unended, takes, self.fleet.len()));
                if now > end {
                    break;
                }
            }
            self.happens(now, event);
            self.invariants.verdict()?;
        }
        self.measure.lost = self.invariants.unended();
        if self.measure.lost > 0 {
            let found = format!("{} did not, long after everything else", self.measure.lost);
            self.invariants.violation("every accepted task ends", found);
        }
        self.invariants.verdict()?;
        self.measure.horizon = horizon;
        Ok(self.measure)
    }

    fn plan_house(&mut self, manager: usize) {
        let incarnation = self.managers[manager].incarnation;
        self.agenda.plan(self.now, Event::Probe { manager, incarnation });
        if self.placement == Placement::Semaphore {
            self.agenda
                .plan(self.now + nanos(self.lease / 3), Event::Renew { manager, incarnation });
        }
    }

    pub fn sample(&mut self) {
        self.measure.sample(self.now);
        for number in 0..self.fleet.len() {
            self.invariants.idle(ExecutorId(number), &self.fleet);
        }
        let next = self.now + self.sample_every;
        if self.horizon.is_some_and(|horizon| next <= horizon) {
            self.agenda.plan(next, Event::Sample);
        }
    }

    pub fn fault(&mut self, index: usize, begins: bool) {
        let fault = self.faults[index].clone();
        let count = match fault.kind {
            FaultKind::Dead => self.fleet.len(),
            FaultKind::ManagerDead => self.managers.len() as u32,
            // Messages are lost and late by themselves.
            _ => return,
        };
        let hit = (0..count).filter(|number| u16::try_from(*number).is_ok_and(|it| fault.hits(it)));
        for number in hit {
            match (fault.kind, begins) {
                (FaultKind::Dead, true) => self.kill_executor(ExecutorId(number)),
                (FaultKind::Dead, false) => self.fleet.revive(ExecutorId(number), self.now),
                (_, true) => self.kill_manager(number as usize),
                (_, false) => self.start_manager(number as usize),
            }
        }
    }

    fn kill_executor(&mut self, at: ExecutorId) {
        for (_, execution) in self.fleet.kill(at).unwrap_or_default() {
            self.measure.stops(execution.began, self.now);
        }
        self.cut_polls(at);
    }

    fn kill_manager(&mut self, manager: usize) {
        let it = &mut self.managers[manager];
        it.down += 1;
        if it.down == 1 {
            it.forgets(self.placement);
            self.invariants.queue(0);
            let managers = self.managers.len();
            self.ledger.forget_queue(|ticket| ticket.0 as usize % managers == manager);
        }
    }

    /// Restarts a manager from its store: queued tasks are queued again, and sent attempts are followed.
    fn start_manager(&mut self, manager: usize) {
        let it = &mut self.managers[manager];
        it.down = it.down.saturating_sub(1);
        if it.down > 0 {
            return;
        }
        self.plan_house(manager);
        let it = &mut self.managers[manager];
        let kept: Vec<_> =
            it.store.iter().map(|(ticket, state)| (*ticket, state.clone())).collect();
        let outside: Vec<_> = std::mem::take(&mut it.outside).into();
        for (ticket, mut state) in kept {
            let executor =
                state.assignment.as_ref().and_then(|assignment| assignment.executor.parse().ok());
            if executor.is_none() && self.flaw != Some(ExecutorFlaw::ReusesNumbers) {
                // The previous incarnation may have sent one more attempt than it persisted: its number is not
                // used again.
                state.attempt += 1;
            }
            let entry = Entry { state, drive: None, lease: None };
            self.managers[manager].book.insert(ticket, entry);
            match executor.map(ExecutorId) {
                Some(executor) => self.resume(manager, ticket, executor),
                None => self.enqueue(manager, ticket),
            }
        }
        for ticket in outside {
            self.submitted(manager, ticket);
        }
        self.go_on(manager, None);
    }

    fn resume(&mut self, manager: usize, ticket: Ticket, executor: ExecutorId) {
        let place = QueuePosition { priority: Normal, seq: 0 };
        let it = &mut self.managers[manager];
        it.dispatcher.resume(ticket, executor, place, RUNTIME);
        let Some(entry) = it.book.get_mut(&ticket) else { return };
        entry.drive = Some(Drive { at: executor, ordered: self.now, heard: self.now });
        let key = Key { ticket, attempt: entry.state.attempt };
        let from = Caller { manager, incarnation: it.incarnation, key };
        if let (Placement::Semaphore, Some(holder)) = (self.placement, key.name()) {
            self.send(Event::LedgerHeard(from, LedgerRequest::Regain { holder, at: executor }));
        }
        self.ask(from, executor, Operation::Follow);
    }

    fn is_alive(&self, manager: usize, incarnation: u32) -> bool {
        let it = &self.managers[manager];
        it.down == 0 && it.incarnation == incarnation
    }

    /// Asks every executor for its capacity, unless a reply is pending.
    pub fn probe(&mut self, manager: usize, incarnation: u32) {
        if !self.is_alive(manager, incarnation) {
            return;
        }
        for number in 0..self.fleet.len() {
            let it = &mut self.managers[manager];
            let Some(asked) = it.asked.get_mut(number as usize) else { continue };
            if std::mem::replace(asked, true) {
                continue;
            }
            let changes = it.dispatcher.changes(ExecutorId(number));
            let key = Key { ticket: Ticket(0), attempt: 0 };
            self.ask(
                Caller { manager, incarnation, key },
                ExecutorId(number),
                Operation::Capacity { changes },
            );
        }
        self.agenda.plan(self.now + nanos(PROBE_EVERY), Event::Probe { manager, incarnation });
    }

    pub fn probed(&mut self, manager: usize, id: ExecutorId, reply: Reply, changes: u64) {
        let it = &mut self.managers[manager];
        if let Some(asked) = it.asked.get_mut(id.0 as usize) {
            *asked = false;
        }
        match reply {
            Reply::Capacity { taken } => {
                it.dispatcher.executor_up(id, 1, ExecutorRuntimes::All);
                it.dispatcher.reported(id, taken, changes);
            }
            _ => it.dispatcher.executor_down(id),
        }
        self.go_on(manager, None);
    }

    /// Renews the leases of slots, and the queued requests in the ledger.
    pub fn renew(&mut self, manager: usize, incarnation: u32) {
        if !self.is_alive(manager, incarnation) {
            return;
        }
        let held = self.managers[manager].book.iter().filter_map(|(ticket, entry)| {
            let (drive, lease) = (entry.drive?, entry.lease.clone()?);
            let key = Key { ticket: *ticket, attempt: entry.state.attempt };
            Some((
                Caller { manager, incarnation, key },
                LedgerRequest::Renew { lease, at: drive.at },
            ))
        });
        for (from, ask) in held.collect::<Vec<_>>() {
            self.send(Event::LedgerHeard(from, ask));
        }
        self.ask_ledger_again(manager);
        self.agenda.plan(self.now + nanos(self.lease / 3), Event::Renew { manager, incarnation });
    }
}
