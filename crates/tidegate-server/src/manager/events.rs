use super::actor::Actor;
use super::event::Event;
use super::meters::Repeated;
use super::view::TaskNotice;
use super::{DeskError, command::Reply, view::TaskView};
use std::time::Duration;
use tidegate::capacity::{Answer, LeaseAnswer, Ticket};
use tidegate::ledger::{Ledger, SlotLease};
use tidegate::store::StoreError;
use tidegate::task::{TaskState, TaskStatus};
use tidegate::tasks::{Submission, TaskRecord, TaskStore};

// === impl Actor ===

impl<S: TaskStore, L: Ledger> Actor<S, L> {
    pub fn take_event(&mut self, event: Event) {
        let now = self.now();
        match event {
            Event::Submitted { record, bytes, submission, reply } => {
                self.arriving.0 -= 1;
                self.arriving.1 -= bytes;
                self.submitted(*record, *submission, reply);
            }
            Event::Listed { page, status, reply } => self.listed(page, status, reply),
            Event::Adopted(records) => records.into_iter().for_each(|record| self.adopted(record)),
            Event::Leased { ticket, answer, lease } => self.leased(ticket, answer, lease, now),
            Event::LedgerChanged => {
                for order in self.dispatcher.ledger_changed(now) {
                    self.obey(order);
                }
            }
            Event::Reserved { ticket, answer, reservation, executor, key } => {
                self.count_refusal(answer);
                let reserved = reservation.is_some();
                if let Some(entry) = self.book.get_mut(ticket) {
                    entry.reservation = reservation;
                }
                match self.dispatcher.reserved(ticket, answer, now) {
                    Some(order) => self.obey(order),
                    // The task is not wanted any more, and nobody else should wait for its slot.
                    None if reserved => self.unreserve(executor, key),
                    None => {}
                }
            }
            Event::Answered { ticket, answer } => {
                self.count_refusal(answer);
                if let Some(order) = self.dispatcher.answered(ticket, answer, now) {
                    self.obey(order);
                }
            }
            Event::Returned { ticket, answer, state } => self.returned(ticket, answer, *state),
            Event::Stands { ticket, state } => self.stands(ticket, *state),
            Event::Wrote { ticket, attempt, chunks } => {
                if let Some(entry) = self.book.get_mut(ticket) {
                    for chunk in chunks {
                        entry.wrote(&chunk);
                        entry.tell(TaskNotice::Output { attempt, chunk });
                    }
                }
            }
            Event::Freed { ticket, held } => {
                if !held.is_zero() {
                    self.estimate.saw(held);
                }
                if let Some(order) = self.dispatcher.finished(ticket) {
                    self.obey(order);
                }
            }
            Event::Over { ticket, state } => self.over(ticket, state.map(|state| *state)),
            Event::Probed { executor, report, changes } => self.probed(executor, report, changes),
            Event::Regained { ticket, lease } => self.regained(ticket, lease),
            Event::FenceSeen { executor, fence } => {
                self.fences.entry(executor).or_default().push_back((now, fence));
            }
        }
    }

    /// An attempt was not taken: its task waits again at its old place, unless it was told to stop meanwhile.
    fn returned(&mut self, ticket: Ticket, answer: Answer, state: TaskState) {
        self.count_refusal(answer);
        if let Some(entry) = self.book.get_mut(ticket) {
            entry.driven = None;
            entry.at = None;
            entry.record.state = state;
        }
        let now = self.now();
        if let Some(order) = self.dispatcher.answered(ticket, answer, now) {
            self.obey(order);
        }
        self.obey_wish(ticket);
    }

    fn count_refusal(&self, answer: Answer) {
        if matches!(answer, Answer::Full { .. }) {
            self.meters.refused();
        }
    }

    fn submitted(
        &mut self,
        record: TaskRecord,
        submission: Result<Submission, StoreError>,
        reply: Reply<(TaskView, bool)>,
    ) {
        let answer = match submission {
            Ok(Submission::New) => {
                self.meters.submitted(record.spec.priority);
                if let Some(ticket) = self.book.insert(record.clone()) {
                    self.enqueue(ticket);
                }
                Ok((self.view(&record), true))
            }
            Ok(Submission::Same(there)) => {
                // It may have been kept by a submission whose answer was lost; then nobody here knows of it yet.
                let ours = *there.state.owner == *self.terms.owner && !there.state.status.is_over();
                if ours && self.book.ticket(&there.id).is_none() {
                    self.adopted(there.clone());
                }
                Ok((self.view(&there), false))
            }
            Ok(Submission::OtherUnderId(id)) => Err(DeskError::OtherUnderId(id)),
            Ok(Submission::OtherUnderKey(id)) => Err(DeskError::OtherUnderKey(id)),
            Err(StoreError::Refused(why)) => Err(DeskError::Refused(why)),
            Err(error) => {
                // It may be kept all the same.
                self.look_again(record.id);
                Err(DeskError::Store(error.to_string()))
            }
        };
        // Whoever submitted it may be gone; the task is kept all the same.
        let _ = reply.send(answer);
    }

    /// A task of an earlier life, or of a manager that is gone: it waits, or is looked for where it was sent.
    fn adopted(&mut self, mut record: TaskRecord) {
        if record.state.placed.is_none() {
            // The life before may have sent one more attempt than it had time to keep: its number is not given
            // again.
            record.state.attempt += 1;
        }
        let placed = record.state.placed.clone();
        let Some(ticket) = self.book.insert(record) else { return };
        let Some(placed) = placed else {
            self.enqueue(ticket);
            return self.obey_wish(ticket);
        };
        let at = self.executors.iter().position(|it| it.name == placed.executor);
        match at.and_then(|at| u32::try_from(at).ok()) {
            Some(at) => self.resume(ticket, tidegate::capacity::ExecutorId(at)),
            None => self.give_up(ticket, &placed.executor),
        }
    }

    fn leased(
        &mut self,
        ticket: Ticket,
        answer: LeaseAnswer,
        lease: Option<SlotLease>,
        now: Duration,
    ) {
        if let Some(lease) = lease {
            self.regained(ticket, lease);
        }
        if let Some(order) = self.dispatcher.leased(ticket, answer, now) {
            self.obey(order);
        }
    }

    fn stands(&mut self, ticket: Ticket, state: TaskState) {
        let Some(entry) = self.book.get_mut(ticket) else { return };
        if state.status == TaskStatus::Provisioning && entry.record.state.status < state.status {
            let waited_ms = state.started_ms.unwrap_or(0).saturating_sub(state.queued_ms);
            self.meters.waited(Duration::from_millis(waited_ms));
        }
        let cancel_asked = state.cancel_asked || entry.cancel_asked;
        entry.record.state = TaskState { cancel_asked, ..state };
        self.tell_status(ticket);
    }

    /// An attempt is over: so is the task, or it waits again, or it is another manager's.
    fn over(&mut self, ticket: Ticket, state: Option<TaskState>) {
        if let Some(order) = self.dispatcher.withdraw(ticket) {
            self.obey(order);
        }
        self.release(ticket);
        let Some(state) = state else {
            self.meters.abandoned();
            if let Some(entry) = self.book.remove(ticket) {
                self.look_again(entry.record.id);
            }
            return;
        };
        let Some(entry) = self.book.get_mut(ticket) else { return };
        entry.driven = None;
        entry.at = None;
        let before = std::mem::replace(&mut entry.record.state, state);
        let state = &entry.record.state;
        if state.failures > before.failures && !state.status.is_over() {
            self.meters.repeated(Repeated::Failed);
        } else if state.losses > before.losses && !state.status.is_over() {
            self.meters.repeated(Repeated::Lost);
        }
        if !state.status.is_over() {
            self.tell_status(ticket);
            self.enqueue(ticket);
            return self.obey_wish(ticket);
        }
        if let Some(ending) = &state.ending {
            self.meters.ended(ending.outcome, ending.reason);
        }
        self.tell_status(ticket);
        self.book.remove(ticket);
    }

    pub fn tell_status(&mut self, ticket: Ticket) {
        if let Some(entry) = self.book.get(ticket)
            && entry.notices.is_some()
        {
            let view = self.view(&entry.record);
            entry.tell(TaskNotice::Status(Box::new(view)));
        }
    }
}
