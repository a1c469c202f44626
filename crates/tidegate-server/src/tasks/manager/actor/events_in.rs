use super::actor::Actor;
use crate::tasks::manager::command::Reply;
use crate::tasks::manager::error::TaskError;
use crate::tasks::manager::event::Event;
use crate::tasks::manager::metrics::RetryCause;
use crate::tasks::manager::view::{TaskList, TaskNotice, TaskView};
use std::time::Duration;
use tidegate::capacity::{ExecutorAnswer, ExecutorId, Ticket};
use tidegate::ledger::Ledger;
use tidegate::store::StoreError;
use tidegate::task::{ExecutionKey, TaskState, TaskStatus};
use tidegate::tasks::{Submission, TaskPage, TaskRecord, TaskStore};

// === impl Actor ===

impl<S: TaskStore, L: Ledger> Actor<S, L> {
    /// Handles an event of a background call or an attempt.
    pub(super) fn take_event(&mut self, event: Event) {
        match event {
            Event::Submitted { record, bytes, submission, reply } => {
                self.tasks.end_submission(bytes);
                self.submitted(*record, *submission, reply);
            }
            Event::Listed { page, status, reply } => self.listed(page, status, reply),
            Event::Adopted(records) => records.into_iter().for_each(|record| self.adopted(record)),
            Event::Claimed(claimed) => self.claimed(claimed),
            Event::GivenBack => self.given_back(),
            Event::HandedOver => self.handed_over(),
            Event::Hinted(hint) => self.hinted(hint),
            Event::QueueRead { depth, live } => {
                if let Some(shared) = &mut self.shared {
                    shared.read(depth, live);
                }
            }
            Event::LeaseAnswered { ticket, answer } => self.lease_answered(ticket, answer),
            Event::LedgerChanged => {
                let orders = self.queue.ledger_changed();
                self.obey_all(orders);
            }
            Event::ReservationAnswered { ticket, answer, reservation, executor, key } => {
                self.reservation_answered(ticket, answer, reservation, executor, key);
            }
            Event::AttemptAnswered { ticket, answer } => self.answered(ticket, answer),
            Event::AttemptReturned { ticket, answer, state } => {
                if let Some(entry) = self.tasks.get_mut(ticket) {
                    entry.end_attempt(*state);
                }
                self.answered(ticket, answer);
                match self.shared {
                    Some(_) => self.leave_to_others(ticket),
                    None => self.cancel_if_requested(ticket),
                }
            }
            Event::StateChanged { ticket, state } => self.state_changed(ticket, *state),
            Event::OutputWritten { ticket, attempt, chunks } => {
                if let Some(entry) = self.tasks.get_mut(ticket) {
                    chunks.into_iter().for_each(|chunk| entry.append_output(attempt, chunk));
                }
            }
            Event::SlotFreed { ticket, slot_time } => {
                if !slot_time.is_zero() {
                    self.meters.slot_freed(slot_time);
                }
                let order = self.queue.slot_freed(ticket, slot_time);
                self.obey_all(order);
            }
            Event::AttemptOver { ticket, state } => self.attempt_over(ticket, state),
            Event::Probed { executor, report, changes } => {
                self.probed(executor, report.map(|report| *report), changes);
            }
            Event::Progressed { key, progress } => self.progressed(&key, &progress),
            Event::LeaseRegained { ticket, lease } => self.lease_regained(ticket, lease),
            Event::FenceSeen { executor, fence } => {
                self.leases.observe_fence(executor, self.queue.now(), fence);
            }
        }
    }

    fn submitted(
        &mut self,
        record: TaskRecord,
        submission: Result<Submission, StoreError>,
        reply: Reply<(TaskView, bool)>,
    ) {
        let response = match submission {
            Ok(Submission::New) => {
                self.meters.submitted(record.spec.priority);
                match &mut self.shared {
                    Some(shared) => shared.submitted(),
                    None => {
                        if let Some(ticket) = self.tasks.insert(record.clone()) {
                            self.queue.push(ticket, &record);
                        }
                    }
                }
                Ok((self.view(&record), true))
            }
            // Equal tasks of two clients are two tasks: neither may see the other's.
            Ok(Submission::Same(stored)) if stored.state.client != record.state.client => {
                Err(TaskError::IdInUse(record.id))
            }
            Ok(Submission::Same(stored)) => {
                // A submission whose response was lost may have persisted it; then this manager must adopt it. Not
                // where it claims: there it may own the task by a claim that is on its way here.
                let own = self.shared.is_none() && *stored.state.owner == *self.settings.owner;
                if own && !stored.state.status.is_over() && self.tasks.ticket(&stored.id).is_none()
                {
                    self.adopted(stored.clone());
                }
                Ok((self.view(&stored), false))
            }
            Ok(Submission::OtherUnderId(id)) => Err(TaskError::IdInUse(id)),
            Ok(Submission::OtherUnderKey(id)) => Err(TaskError::KeyInUse(id)),
            Err(StoreError::Refused(why)) => Err(TaskError::Refused(why)),
            Err(error) => {
                // The store may have persisted it all the same.
                if self.shared.is_none() {
                    self.store.read_again(record.id, self.settings.owner.clone());
                }
                Err(TaskError::Store(error.to_string()))
            }
        };
        // Fails when the client has left; the task is persisted all the same.
        let _ = reply.send(response);
    }

    /// Responds with a page. Tasks that are not over are newer in the book than in the store.
    fn listed(
        &self,
        page: Result<TaskPage, StoreError>,
        status: Option<TaskStatus>,
        reply: Reply<TaskList>,
    ) {
        let response = page.map(|page| {
            let views = page.tasks.iter().map(|record| {
                let live = self.tasks.find(&record.id).map(|entry| entry.record());
                self.view(live.unwrap_or(record))
            });
            let wanted = views.filter(|view| status.is_none_or(|status| view.status == status));
            TaskList { tasks: wanted.collect(), next: page.next }
        });
        let _ = reply.send(response.map_err(|error| match error {
            StoreError::Refused(why) => TaskError::Refused(why),
            error => TaskError::Store(error.to_string()),
        }));
    }

    /// Takes over a task of an earlier process, or of a manager that is gone: queues it, or resumes its attempt.
    fn adopted(&mut self, mut record: TaskRecord) {
        if self.shared.is_some() && record.state.is_waiting() {
            // Of a process that kept a queue of its own.
            return self.give_back(record);
        }
        if record.state.assignment.is_none() {
            // The process before may have sent one more attempt than it persisted: that number is not used again.
            record.state.skip_attempt();
        }
        let Some(ticket) = self.tasks.insert(record.clone()) else { return };
        let Some(assignment) = &record.state.assignment else {
            self.queue.push(ticket, &record);
            return self.cancel_if_requested(ticket);
        };
        match self.find_executor(&assignment.executor) {
            Some(executor) => self.resume(ticket, executor, &record),
            None => {
                let executor = &assignment.executor;
                tracing::warn!(task = %record.id, %executor, "unknown executor; the task is retried");
                self.store.lose_after(self.settings.lease, ticket, record);
            }
        }
    }

    fn answered(&mut self, ticket: Ticket, answer: ExecutorAnswer) {
        self.count_refusal(answer);
        let order = self.queue.answered(ticket, answer);
        self.obey_all(order);
    }

    fn reservation_answered(
        &mut self,
        ticket: Ticket,
        answer: ExecutorAnswer,
        reservation: Option<String>,
        executor: ExecutorId,
        key: ExecutionKey,
    ) {
        self.count_refusal(answer);
        let reserved = reservation.is_some();
        if let Some(entry) = self.tasks.get_mut(ticket) {
            entry.set_reservation(reservation);
        }
        match self.queue.reserved(ticket, answer) {
            Some(order) => self.obey(order),
            // The task needs no slot any more; another must not wait for this one.
            None if reserved => {
                if let Some((_, link)) = self.executors.link(executor) {
                    self.calls.release_reservation(link, key);
                }
            }
            None => {}
        }
    }

    fn count_refusal(&self, answer: ExecutorAnswer) {
        if matches!(answer, ExecutorAnswer::Full { .. }) {
            self.meters.refused();
        }
    }

    fn state_changed(&mut self, ticket: Ticket, state: TaskState) {
        let Some(entry) = self.tasks.get_mut(ticket) else { return };
        let before = entry.record().state.status;
        if state.status == TaskStatus::Provisioning && before < state.status {
            let waited_ms = state.started_ms.unwrap_or(0).saturating_sub(state.queued_ms);
            self.meters.queued(Duration::from_millis(waited_ms));
        }
        entry.set_state(state);
        self.notify_status(ticket);
    }

    /// Ends an attempt: the task is over, queued again, or another manager's.
    fn attempt_over(&mut self, ticket: Ticket, state: Option<Box<TaskState>>) {
        let withdrawn = self.queue.withdraw(ticket);
        self.obey_all(withdrawn);
        self.release_lease(ticket);
        let Some(state) = state else {
            self.meters.abandoned();
            if let Some(record) = self.tasks.remove(ticket) {
                self.begin_kept(&record.id);
                self.store.read_again(record.id, self.settings.owner.clone());
            }
            return;
        };
        let Some(entry) = self.tasks.get_mut(ticket) else { return };
        let before = entry.end_attempt(*state);
        let record = entry.record().clone();
        let state = &record.state;
        if !state.status.is_over() {
            if state.failures > before.failures {
                self.meters.retried(RetryCause::Failed);
            } else if state.losses > before.losses {
                self.meters.retried(RetryCause::Lost);
            }
            self.notify_status(ticket);
            if self.shared.is_some() {
                return self.leave_to_others(ticket);
            }
            self.queue.push(ticket, &record);
            return self.cancel_if_requested(ticket);
        }
        if let Some(ending) = &state.ending {
            self.meters.ended(ending.outcome, ending.reason);
        }
        self.notify_status(ticket);
        self.tasks.remove(ticket);
    }

    /// Notifies a task's watchers of its state.
    pub(super) fn notify_status(&self, ticket: Ticket) {
        if let Some(entry) = self.tasks.get(ticket)
            && entry.has_watchers()
        {
            let view = self.view(entry.record());
            entry.notify(TaskNotice::Status(Box::new(view)));
        }
    }
}
