//! What is killed and comes back, what is due by the clock, and a run from its beginning until all is over.

use super::ExecutorFlaw;
use super::driver::patience;
use super::manager::{Drive, Entry, RUNTIME};
use super::managers::{Event, LedgerAsk, Managers};
use super::measure::Measure;
use super::message::{Ask, Caller, Key, Told};
use super::setup::nanos;
use crate::Violation;
use crate::agenda::Time;
use crate::scenario::FaultKind;
use std::time::Duration;
use tidegate_core::admission::MessagePriority::Normal;
use tidegate_core::capacity::{ExecutorId, Place, Placement, Serves, Ticket};

/// How often executors are asked how full they are, where anything can go wrong.
const PROBE_EVERY: Duration = Duration::from_secs(1);

// === impl Managers ===

impl Managers {
    /// The whole scenario, and after its load until everything is over.
    pub(super) fn play(mut self) -> Result<Measure, Violation> {
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
                if self.rules.all_ended() {
                    break;
                }
                let takes = self.measure.tasks.first().map_or(0, |task| task.takes);
                let unended = self.rules.unended();
                let end =
                    *give_up.get_or_insert_with(|| now + patience(unended, takes, self.crew.len()));
                if now > end {
                    break;
                }
            }
            self.happens(now, event);
            self.rules.verdict()?;
        }
        self.measure.lost = self.rules.unended();
        if self.measure.lost > 0 {
            let found = format!("{} did not, long after everything else", self.measure.lost);
            self.rules.violation("every accepted task ends", found);
        }
        self.rules.verdict()?;
        self.measure.horizon = horizon;
        Ok(self.measure)
    }

    fn plan_house(&mut self, manager: usize) {
        let life = self.managers[manager].life;
        self.agenda.plan(self.now, Event::Probe { manager, life });
        if self.placement == Placement::Semaphore {
            self.agenda.plan(self.now + nanos(self.lease / 3), Event::Renew { manager, life });
        }
    }

    pub(super) fn sample(&mut self) {
        self.measure.sample(self.now);
        for number in 0..self.crew.len() {
            self.rules.idle(ExecutorId(number), &self.crew);
        }
        let next = self.now + self.sample_every;
        if self.horizon.is_some_and(|horizon| next <= horizon) {
            self.agenda.plan(next, Event::Sample);
        }
    }

    pub(super) fn fault(&mut self, index: usize, begins: bool) {
        let fault = self.faults[index].clone();
        let count = match fault.kind {
            FaultKind::Dead => self.crew.len(),
            FaultKind::ManagerDead => self.managers.len() as u32,
            // Messages are lost and late by themselves.
            _ => return,
        };
        let hit = (0..count).filter(|number| u16::try_from(*number).is_ok_and(|it| fault.hits(it)));
        for number in hit {
            match (fault.kind, begins) {
                (FaultKind::Dead, true) => self.kill_executor(ExecutorId(number)),
                (FaultKind::Dead, false) => self.crew.revive(ExecutorId(number), self.now),
                (_, true) => self.kill_manager(number as usize),
                (_, false) => self.start_manager(number as usize),
            }
        }
    }

    fn kill_executor(&mut self, at: ExecutorId) {
        for (_, execution) in self.crew.kill(at).unwrap_or_default() {
            self.measure.stops(execution.began, self.now);
        }
        self.cut_polls(at);
    }

    fn kill_manager(&mut self, manager: usize) {
        let it = &mut self.managers[manager];
        it.down += 1;
        if it.down == 1 {
            it.forgets(self.placement);
            self.rules.line(0);
            let managers = self.managers.len();
            self.ledger.forget_line(|ticket| ticket.0 as usize % managers == manager);
        }
    }

    /// What its store has is taken up again: what waits, waits; what was sent is looked for.
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
            let placed = state.placed.as_ref().and_then(|placed| placed.executor.parse().ok());
            if placed.is_none() && self.flaw != Some(ExecutorFlaw::ReusesNumbers) {
                // The life before may have sent one more attempt than it had time to keep: its number is not given
                // again.
                state.attempt += 1;
            }
            let entry = Entry { state, drive: None, lease: None };
            self.managers[manager].book.insert(ticket, entry);
            match placed.map(ExecutorId) {
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
        let place = Place { priority: Normal, seq: 0 };
        let it = &mut self.managers[manager];
        it.dispatcher.resume(ticket, executor, place, RUNTIME);
        let Some(entry) = it.book.get_mut(&ticket) else { return };
        entry.drive = Some(Drive { at: executor, ordered: self.now, heard: self.now });
        let key = Key { ticket, attempt: entry.state.attempt };
        let from = Caller { manager, life: it.life, key };
        if let (Placement::Semaphore, Some(holder)) = (self.placement, key.name()) {
            self.send(Event::LedgerHeard(from, LedgerAsk::Regain { holder, at: executor }));
        }
        self.ask(from, executor, Ask::Follow);
    }

    fn is_alive(&self, manager: usize, life: u32) -> bool {
        let it = &self.managers[manager];
        it.down == 0 && it.life == life
    }

    /// Asks every executor how full it is, unless it still owes an answer.
    pub(super) fn probe(&mut self, manager: usize, life: u32) {
        if !self.is_alive(manager, life) {
            return;
        }
        for number in 0..self.crew.len() {
            let it = &mut self.managers[manager];
            let Some(asked) = it.asked.get_mut(number as usize) else { continue };
            if std::mem::replace(asked, true) {
                continue;
            }
            let changes = it.dispatcher.changes(ExecutorId(number));
            let key = Key { ticket: Ticket(0), attempt: 0 };
            self.ask(Caller { manager, life, key }, ExecutorId(number), Ask::Capacity { changes });
        }
        self.agenda.plan(self.now + nanos(PROBE_EVERY), Event::Probe { manager, life });
    }

    pub(super) fn probed(&mut self, manager: usize, id: ExecutorId, told: Told, changes: u64) {
        let it = &mut self.managers[manager];
        if let Some(asked) = it.asked.get_mut(id.0 as usize) {
            *asked = false;
        }
        match told {
            Told::Capacity { taken } => {
                it.dispatcher.executor_up(id, 1, Serves::All);
                it.dispatcher.reported(id, taken, changes);
            }
            _ => it.dispatcher.executor_down(id),
        }
        self.go_on(manager, None);
    }

    /// Keeps the slots that are held, and the places in the ledger's line.
    pub(super) fn renew(&mut self, manager: usize, life: u32) {
        if !self.is_alive(manager, life) {
            return;
        }
        let held = self.managers[manager].book.iter().filter_map(|(ticket, entry)| {
            let (drive, lease) = (entry.drive?, entry.lease.clone()?);
            let key = Key { ticket: *ticket, attempt: entry.state.attempt };
            Some((Caller { manager, life, key }, LedgerAsk::Renew { lease, at: drive.at }))
        });
        for (from, ask) in held.collect::<Vec<_>>() {
            self.send(Event::LedgerHeard(from, ask));
        }
        self.ask_ledger_again(manager);
        self.agenda.plan(self.now + nanos(self.lease / 3), Event::Renew { manager, life });
    }
}
