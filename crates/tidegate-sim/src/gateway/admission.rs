//! Admission of an attempt, and its end.

use super::Flaw;
use super::event::Event;
use super::model::{Broken, Checks, HeldPermit, State};
use super::simulation::{Simulation, Todo};
use crate::agenda::Time;
use std::time::Duration;
use tidegate_core::admission::{MessagePriority, Reason, Refusal};
use tidegate_core::limit::UpstreamOutcome;
use tidegate_core::routing::TriedUpstreams;

/// One in this many requests keeps its permit under the flaw `leaked_permit`.
const LEAKS_ONE_IN: u64 = 64;

/// The time between the check and the count of the flaw `raced_limit`, in nanoseconds.
const RACE: Time = 1_000_000;

impl<'a> Simulation<'a> {
    /// Starts an attempt of a client, the first or a retry.
    pub(super) fn ask(&mut self, id: u32) -> Result<(), Broken> {
        let class = self.class(id);
        let (priority, tenant, deadline) = (class.priority, class.tenant, class.deadline);
        let now = self.now;
        let request = self.requests.get_mut(id);
        request.attempt = request.attempt.wrapping_add(1);
        request.began = now;
        request.tried = TriedUpstreams::default();
        request.forgiven = 0;
        let returns = request.returns;
        let attempt = request.attempt;
        self.admission.of_mut(priority).record_attempt(returns);
        if let Some(deadline) = deadline {
            self.agenda.plan(now + deadline, Event::Deadline { id, attempt });
        }
        if priority != MessagePriority::Critical {
            self.budget.record_request(self.at());
        }
        // The tenant's share comes first: a request that it refuses never holds a permit of the gateway.
        let share = tenant.filter(|_| priority != MessagePriority::Critical);
        let share =
            share.and_then(|tenant| self.trackers.tenants[tenant].as_ref().zip(Some(tenant)));
        if let Some((share, tenant)) = share {
            self.decisions += 1;
            match share.try_acquire(priority) {
                Ok(permit) => self.requests.get_mut(id).tenant = Some(permit),
                Err(refusal) => {
                    let told = self.advice_of_tenants[tenant].for_one(refusal, now);
                    return self.refused(id, "client_share", Some(told));
                }
            }
        }
        match self.admit(priority)? {
            Ok(permit) => {
                let request = self.requests.get_mut(id);
                request.permit = permit;
                request.counted = true;
                let in_flight = self.trackers.gateway.lanes().of(priority);
                self.admission.of_mut(priority).record_admission(returns, in_flight);
            }
            Err(refusal) => {
                let told = self.advice.for_one(refusal, now);
                return self.refused(id, refusal.reason.name(), Some(told));
            }
        }
        // A request to an upstream goes on at once: what this takes is nothing beside an upstream's time. The
        // control plane's own answers are as fast as its processor is free.
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

    fn admit(
        &mut self,
        priority: MessagePriority,
    ) -> Result<Result<HeldPermit<'a>, Refusal>, Broken> {
        self.decisions += 1;
        let tracker = &self.trackers.gateway;
        let verdicts = Checks::verdicts(tracker);
        let low = verdicts[MessagePriority::Low.index()];
        let sheds = self.plant == Some(Flaw::ShedCritical) && low == Err(Reason::GlobalLimit);
        if sheds && priority == MessagePriority::Critical {
            self.checks.refused(priority, Reason::GlobalLimit, &verdicts)?;
        }
        match tracker.try_acquire(priority) {
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

    /// Ends a request that the gateway answered itself.
    pub(super) fn answered(&mut self, id: u32) -> Result<(), Broken> {
        self.good(id, None);
        Ok(())
    }

    /// Ends an attempt at its deadline.
    pub(super) fn deadline(&mut self, id: u32) -> Result<(), Broken> {
        let request = self.requests.get(id);
        let (state, upstream, work) = (request.state, usize::from(request.upstream), request.work);
        match state {
            State::Away | State::Control => {}
            State::Queued => {
                self.waiting.leave(id);
                // A free slot may have been too small for this request, and fit the next.
                self.todo.push_back(Todo::Serve);
            }
            State::Sent => {
                self.upstreams[upstream].abandon(id, work);
                self.todo.push_back(Todo::Work(upstream));
            }
        }
        self.failed(id);
        Ok(())
    }

    /// Releases everything that an attempt holds. The caller sets its next state.
    pub(super) fn let_go(&mut self, id: u32) {
        self.leave_upstream(id);
        let leaks = self.plant == Some(Flaw::LeakedPermit);
        let request = self.requests.get_mut(id);
        request.tenant = None;
        // Events planned for it are void.
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

    /// Releases its slot at an upstream.
    pub(super) fn leave_upstream(&mut self, id: u32) {
        let request = self.requests.get_mut(id);
        let upstream = usize::from(request.upstream);
        request.share = None;
        let (has_slot, sent_at) = (request.state == State::Sent, request.sent_at);
        let outcome = std::mem::replace(&mut request.outcome, UpstreamOutcome::Ignored);
        if let Some(ticket) = request.ticket.take() {
            let is_queued = !self.waiting.is_empty();
            let served = has_slot.then(|| Duration::from_nanos(self.now - sent_at));
            self.fleet.release((upstream, ticket), (outcome, served), is_queued, self.now);
        }
        if has_slot {
            self.checks.back(upstream);
            self.waiting.count_ended(Duration::from_nanos(self.now - sent_at));
            if self.plant != Some(Flaw::LostWakeup) {
                self.todo.push_back(Todo::Serve);
            }
            // It has no state until it is offered again or its client gets a response.
            let _ = self.set_state(id, State::Away);
        }
    }
}
