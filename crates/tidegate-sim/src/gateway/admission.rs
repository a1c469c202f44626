//! The way of an attempt into the gateway, and its end there.

use super::Flaw;
use super::check::{Broken, Checks};
use super::event::Event;
use super::request::{Held, Last, State, Tried};
use super::simulation::{Simulation, Todo};
use crate::agenda::Time;
use tidegate_core::admission::{MessagePriority, Reason, Refusal};

/// Of so many that end, one keeps its permit where that flaw is planted.
const LEAKS_ONE_IN: u64 = 64;

/// Two that come within this time are at the same moment to who checks first and counts after.
const RACE: Time = 1_000_000;

impl<'a> Simulation<'a> {
    /// A client asks, for the first time or again.
    pub(super) fn ask(&mut self, id: u32) -> Result<(), Broken> {
        let class = self.class(id);
        let (priority, tenant, deadline) = (class.priority, class.tenant, class.deadline);
        let now = self.now;
        let request = self.requests.get_mut(id);
        request.attempt = request.attempt.wrapping_add(1);
        request.began = now;
        request.tried = Tried::default();
        request.forgiven = 0;
        request.last = Last::None;
        if let Some(deadline) = deadline {
            let attempt = request.attempt;
            self.agenda.plan(now + deadline, Event::Deadline { id, attempt });
        }
        if priority != MessagePriority::Critical {
            self.budget.record_request(self.at());
        }
        // The share comes first: what it refuses never holds a place of the gateway's.
        let share = tenant.filter(|_| priority != MessagePriority::Critical);
        let share =
            share.and_then(|tenant| self.trackers.tenants[tenant].as_ref().zip(Some(tenant)));
        if let Some((share, tenant)) = share {
            self.decisions += 1;
            match share.try_admit(priority) {
                Ok(permit) => self.requests.get_mut(id).tenant = Some(permit),
                Err(refusal) => {
                    let told = self.advice_of_tenants[tenant].for_one(refusal);
                    return self.refused(id, "client_share", Some(told));
                }
            }
        }
        match self.admit(priority)? {
            Ok(permit) => {
                let request = self.requests.get_mut(id);
                request.permit = permit;
                request.counted = true;
            }
            Err(refusal) => {
                let told = self.advice.for_one(refusal);
                return self.refused(id, refusal.reason.name(), Some(told));
            }
        }
        // A request to a worker goes on at once: what this takes is nothing beside a worker's time. The control
        // plane's own answers are as fast as its processor is free.
        let processed = self.process(self.settings.request_cost);
        if priority == MessagePriority::Critical {
            let stamp = self.set_state(id, State::Control);
            let time = self.requests.get(id).work.time.as_nanos() as Time;
            self.agenda.plan(processed + time, Event::Answered { id, stamp });
            return Ok(());
        }
        self.todo.push_back(Todo::Offer(id));
        Ok(())
    }

    fn admit(&mut self, priority: MessagePriority) -> Result<Result<Held<'a>, Refusal>, Broken> {
        self.decisions += 1;
        let tracker = &self.trackers.gateway;
        let verdicts = Checks::verdicts(tracker);
        let low = verdicts[MessagePriority::Low.index()];
        let sheds = self.plant == Some(Flaw::ShedCritical) && low == Err(Reason::GlobalLimit);
        if sheds && priority == MessagePriority::Critical {
            self.checks.refused(priority, Reason::GlobalLimit, &verdicts)?;
        }
        match tracker.try_admit(priority) {
            Ok(permit) => {
                self.checks.admitted(priority, &verdicts)?;
                self.let_in_at = Some(self.now);
                Ok(Ok(Some(permit)))
            }
            Err(_) if self.plant == Some(Flaw::RacedLimit) && self.is_race() => {
                self.checks.admitted(priority, &verdicts)?;
                Ok(Ok(None))
            }
            Err(refusal) => {
                self.checks.refused(priority, refusal.reason, &verdicts)?;
                Ok(Err(refusal))
            }
        }
    }

    fn is_race(&self) -> bool {
        self.let_in_at.is_some_and(|at| self.now - at < RACE)
    }

    /// The gateway has answered it itself.
    pub(super) fn answered(&mut self, id: u32) -> Result<(), Broken> {
        self.good(id, None);
        Ok(())
    }

    /// Its client waits no longer.
    pub(super) fn deadline(&mut self, id: u32) -> Result<(), Broken> {
        let request = self.requests.get(id);
        let (state, worker, work) = (request.state, usize::from(request.worker), request.work);
        match state {
            State::Away | State::Control => {}
            State::Line => self.lines[worker].leave(),
            State::Sent => {
                self.workers[worker].abandon(id, work);
                self.todo.push_back(Todo::Work(worker));
            }
        }
        self.failed(id);
        Ok(())
    }

    /// Gives back all that an attempt holds. Its state stays what it was: whoever calls this knows what comes
    /// next.
    pub(super) fn let_go(&mut self, id: u32) {
        self.leave_worker(id);
        let leaks = self.plant == Some(Flaw::LeakedPermit);
        let request = self.requests.get_mut(id);
        request.tenant = None;
        // What was planned for it, such as the end of its work, is void.
        request.stamp = request.stamp.wrapping_add(1);
        let permit = request.permit.take();
        if std::mem::take(&mut request.counted) {
            let priority = self.class(id).priority;
            self.checks.left(priority);
            self.over += 1;
        }
        match permit {
            Some(permit) if leaks && self.over.is_multiple_of(LEAKS_ONE_IN) => {
                std::mem::forget(permit);
            }
            Some(permit) => permit.success(),
            None => {}
        }
    }

    /// Gives back its place at a worker and in the line.
    pub(super) fn leave_worker(&mut self, id: u32) {
        let request = self.requests.get_mut(id);
        let worker = usize::from(request.worker);
        request.share = None;
        let has_slot = request.state == State::Sent;
        if let Some(ticket) = request.ticket.take() {
            self.fleet.release(worker, ticket);
        }
        if has_slot {
            self.checks.back(worker);
            if self.lines[worker].has_slots() {
                self.todo.push_back(Todo::PassOn(worker));
            }
            // It is nowhere until it is offered again or its client is told.
            let _ = self.set_state(id, State::Away);
        }
    }
}
