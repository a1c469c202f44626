//! An admitted request on its way to an upstream: it gets a slot, waits for one in the queue of the pool, or is
//! refused.

use super::event::Event;
use super::model::{Ask, Broken, Left, NoRoom, Reservation, State, Taken};
use super::simulation::{ClassNow, Simulation, Todo};
use crate::measure::Attempt;
use std::time::Duration;
use tidegate_core::limit::UpstreamOutcome;
use tidegate_core::routing::Answer;

/// The number of stale connections that do not count against their upstream.
const FORGIVEN_MAX: u8 = 1;

impl<'a> Simulation<'a> {
    /// Finds a slot for a request. It may take one at once if none as urgent waits; otherwise it is queued.
    pub(super) fn offer(&mut self, id: u32) -> Result<(), Broken> {
        let ask = self.ask_of(id);
        if ask.tried.is_full() || self.fleet.is_exhausted(&ask) {
            self.failed(id);
            return Ok(());
        }
        self.decisions += 1;
        if !self.waiting.lets_pass(ask.priority) {
            self.queue_up(id, ask)?;
            // A free slot may be one that those ahead of it can't use.
            self.todo.push_back(Todo::Serve);
            return Ok(());
        }
        let draw = self.rng.next_u64();
        match self.fleet.reserve(&ask, self.waiting.record(), draw, self.now)? {
            Ok(reservation) => self.dispatch(id, reservation),
            Err(NoRoom::Busy) => self.queue_up(id, ask),
            Err(NoRoom::Share) => {
                let wait = self.fleet.refuse(&ask, self.now);
                self.refused(id, "upstream_share", Some(wait))
            }
            Err(NoRoom::NoUpstream) => {
                self.failed(id);
                Ok(())
            }
        }
    }

    /// Adds a request to the queue of the pool, or refuses it if it may not wait.
    fn queue_up(&mut self, id: u32, ask: Ask) -> Result<(), Broken> {
        self.decisions += 1;
        let flow = self.class(id).tenant.map_or(0, |tenant| tenant as u64 + 1);
        let until = self.now + self.settings.wait_max;
        let in_flight = self.fleet.outstanding();
        match self.waiting.arrive((id, ask, flow), until, in_flight, self.now) {
            Some(displaced) => {
                let stamp = self.set_state(id, State::Queued);
                self.agenda.plan(until, Event::WaitedMax { id, stamp });
                if !displaced.is_empty() {
                    self.todo.push_back(Todo::Serve);
                }
                displaced
                    .into_iter()
                    .try_for_each(|other| self.not_served(other, "queue_displaced"))
            }
            None => self.not_served(id, "all_busy"),
        }
    }

    /// Serves the queue of the pool for as long as slots are free.
    pub(super) fn serve(&mut self) -> Result<(), Broken> {
        while !self.waiting.is_empty() && self.fleet.has_room() {
            self.decisions += 1;
            match self.waiting.next(&mut self.fleet, &mut self.rng, self.now)? {
                Some(Left::Served(id, reservation)) => self.dispatch(id, reservation)?,
                Some(Left::Expired(id)) => self.not_served(id, "queue_timeout")?,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Refuses a request after its longest wait in the queue.
    pub(super) fn waited(&mut self, id: u32) -> Result<(), Broken> {
        self.waiting.expire(id);
        self.todo.push_back(Todo::Serve);
        self.not_served(id, "queue_timeout")
    }

    /// Refuses a request that the queue did not take, or let go of.
    fn not_served(&mut self, id: u32, reason: &'static str) -> Result<(), Broken> {
        let wait = self.fleet.refuse(&self.ask_of(id), self.now);
        self.refused(id, reason, Some(wait))
    }

    fn ask_of(&self, id: u32) -> Ask {
        let ClassNow { priority, charge, .. } = *self.class(id);
        Ask { priority, charge, tried: self.requests.get(id).tried }
    }

    /// Sends a request that has a slot, if its upstream is reachable.
    fn dispatch(&mut self, id: u32, reservation: Reservation<'a>) -> Result<(), Broken> {
        let Reservation { upstream, ticket, share } = reservation;
        let stamp = self.set_state(id, State::Sent);
        let now = self.now;
        self.waiting.count_sent(self.class(id).priority);
        let request = self.requests.get_mut(id);
        request.ticket = Some(ticket);
        request.share = share;
        request.upstream = upstream as u16;
        request.sent_at = now;
        self.checks.sent(upstream)?;
        if self.upstreams[upstream].trouble.dead {
            request.outcome = UpstreamOutcome::ConnectFailed;
            self.fleet.answered(upstream, Answer::Failed, now);
            self.fleet.set_up(upstream, false, now);
            request.tried.insert(upstream as u16);
            self.offer_again(id);
            return Ok(());
        }
        if request.forgiven >= FORGIVEN_MAX {
            request.tried.insert(upstream as u16);
        }
        if let Some(ticket) = &mut request.ticket {
            self.fleet.sent(upstream, ticket, now);
        }
        let (began, class, work) = (request.began, request.class, request.work);
        let taken = self.upstreams[upstream].take(id, work, now);
        if taken != Taken::Full {
            self.recorder.attempt(Duration::from_nanos(began), class, Attempt::LetIn);
        }
        match taken {
            Taken::Until(at) => self.agenda.plan(at, Event::Done { id, stamp }),
            Taken::Waits | Taken::Swallowed => {}
            Taken::Fails => {
                self.requests.get_mut(id).outcome = UpstreamOutcome::Refused;
                self.fleet.answered(upstream, FAILURE, now);
                self.failed(id);
            }
            Taken::Full => {
                self.requests.get_mut(id).outcome = UpstreamOutcome::Refused;
                self.fleet.answered(upstream, Answer::Refused, now);
                return self.refused(id, "upstream_overloaded", None);
            }
        }
        Ok(())
    }

    /// Starts the queued requests of an upstream that has a free slot.
    pub(super) fn work(&mut self, upstream: usize) {
        while let Some((id, until)) = self.upstreams[upstream].next(self.now) {
            let stamp = self.requests.get(id).stamp;
            self.agenda.plan(until, Event::Done { id, stamp });
        }
    }

    /// Handles the end of a request at an upstream.
    pub(super) fn done(&mut self, id: u32) -> Result<(), Broken> {
        let request = self.requests.get(id);
        let (upstream, work) = (usize::from(request.upstream), request.work);
        let took = Duration::from_nanos(self.now - request.sent_at);
        let at = &mut self.upstreams[upstream];
        // Its answer does not get through. What was asked is lost when the network is back.
        if at.trouble.cut {
            return Ok(());
        }
        at.end(work);
        at.totals.good += 1;
        self.requests.get_mut(id).outcome = UpstreamOutcome::Success;
        self.fleet.answered(upstream, Answer::Began(took), self.now);
        self.todo.push_back(Todo::Work(upstream));
        self.good(id, Some(upstream as u16));
        Ok(())
    }

    /// Handles a connection that broke before the response. Idempotent requests are retried within the budget.
    pub(super) fn broke(&mut self, id: u32) {
        let idempotent = self.class(id).idempotent;
        let (now, at) = (self.now, self.at());
        let request = self.requests.get_mut(id);
        let upstream = usize::from(request.upstream);
        request.outcome = UpstreamOutcome::ConnectFailed;
        let forgiven = idempotent && request.forgiven < FORGIVEN_MAX;
        if forgiven {
            request.forgiven += 1;
        } else {
            self.fleet.answered(upstream, Answer::Failed, now);
        }
        if forgiven || (idempotent && self.budget.try_retry(at)) {
            self.offer_again(id);
        } else {
            self.upstreams[upstream].totals.failed += 1;
            self.failed(id);
        }
    }

    fn offer_again(&mut self, id: u32) {
        self.leave_upstream(id);
        self.todo.push_back(Todo::Offer(id));
    }
}

/// The answer that a 503 of a failing upstream counts as. A fast failure is not low latency.
const FAILURE: Answer = Answer::Refused;
