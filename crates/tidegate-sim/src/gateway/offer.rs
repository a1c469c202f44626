//! An admitted request on its way to an upstream: it is offered to one after the other until one responds.

use super::event::Event;
use super::model::{Ask, Broken, Entered, Last, QueueRefusal, State, Taken, told};
use super::simulation::{Simulation, Todo};
use crate::measure::Attempt;
use std::time::Duration;
use tidegate_core::routing::{Answer, RouteError};

/// The number of stale connections that do not count against their upstream.
const FORGIVEN_MAX: u8 = 1;

impl Simulation<'_> {
    /// Routes a request to an upstream and enters its queue.
    pub(super) fn offer(&mut self, id: u32) -> Result<(), Broken> {
        let (priority, charge) = (self.class(id).priority, self.class(id).charge);
        loop {
            let tried = self.requests.get(id).tried;
            if tried.is_full() {
                return self.give_up(id);
            }
            self.decisions += 1;
            let ask = Ask { priority, charge, tried };
            let (upstream, ticket) = match self.fleet.route(&ask, self.rng.next_u64(), self.now)? {
                Ok(reserved) => reserved,
                Err(RouteError::Overloaded(overload)) => {
                    return self.refused(id, "all_busy", Some(told(overload.retry_after)));
                }
                Err(_) => return self.give_up(id),
            };
            let request = self.requests.get_mut(id);
            request.ticket = Some(ticket);
            request.upstream = upstream as u16;
            self.decisions += 1;
            match self.queues[upstream].enter(id, priority, &self.requests) {
                Ok(Entered::Passed(share)) => {
                    self.requests.get_mut(id).share = share;
                    return self.turn(id);
                }
                Ok(Entered::Waits { share, displaced }) => {
                    self.requests.get_mut(id).share = share;
                    let stamp = self.set_state(id, State::Queued);
                    self.todo.extend(displaced.map(Todo::Displaced));
                    self.agenda
                        .plan(self.now + self.settings.wait_max, Event::WaitedMax { id, stamp });
                    return self.checks.queued_at(upstream, self.queues[upstream].waiting());
                }
                Err(refusal) => {
                    self.leave_upstream(id);
                    let request = self.requests.get_mut(id);
                    request.tried.insert(upstream as u16);
                    request.last = Last::Queue(refusal.reason());
                }
            }
        }
    }

    /// Ends an attempt that no upstream took.
    fn give_up(&mut self, id: u32) -> Result<(), Broken> {
        match self.requests.get(id).last {
            Last::Queue(reason) => {
                let wait = self.fleet.retry_after();
                self.refused(id, reason, Some(wait))
            }
            Last::None | Last::Broken => {
                self.failed(id);
                Ok(())
            }
        }
    }

    /// Passes a free slot of an upstream to the next request in its queue.
    pub(super) fn pass_on(&mut self, upstream: usize) -> Result<(), Broken> {
        match self.queues[upstream].pass_on(&self.requests) {
            Some(id) => self.turn(id),
            None => Ok(()),
        }
    }

    /// Sends a request whose turn has come, if its upstream is reachable.
    fn turn(&mut self, id: u32) -> Result<(), Broken> {
        let stamp = self.set_state(id, State::Sent);
        let now = self.now;
        let request = self.requests.get_mut(id);
        let upstream = usize::from(request.upstream);
        self.checks.sent(upstream)?;
        if self.upstreams[upstream].trouble.dead {
            self.fleet.answered(upstream, Answer::Refused, now);
            self.fleet.set_up(upstream, false);
            request.tried.insert(upstream as u16);
            request.last = Last::Broken;
            self.offer_again(id);
            return Ok(());
        }
        if request.forgiven >= FORGIVEN_MAX {
            request.tried.insert(upstream as u16);
        }
        request.sent_at = now;
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
                self.fleet.answered(upstream, FAILURE, now);
                self.failed(id);
            }
            Taken::Full => {
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
        self.fleet.answered(upstream, Answer::Began(took), self.now);
        self.todo.push_back(Todo::Work(upstream));
        self.good(id, Some(upstream as u16));
        Ok(())
    }

    /// Refuses a request after its longest wait in a queue.
    pub(super) fn waited(&mut self, id: u32) -> Result<(), Broken> {
        let upstream = usize::from(self.requests.get(id).upstream);
        self.queues[upstream].leave();
        let wait = self.fleet.retry_after();
        self.refused(id, "outbox_wait", Some(wait))
    }

    /// Refuses a request that another displaced from a queue.
    pub(super) fn displaced(&mut self, id: u32) -> Result<(), Broken> {
        let wait = self.fleet.retry_after();
        self.refused(id, "outbox_full", Some(wait))
    }

    /// Handles a connection that broke before the response. Idempotent requests are retried within the budget.
    pub(super) fn broke(&mut self, id: u32) {
        let idempotent = self.class(id).idempotent;
        let (now, at) = (self.now, self.at());
        let request = self.requests.get_mut(id);
        let upstream = usize::from(request.upstream);
        request.last = Last::Broken;
        let forgiven = idempotent && request.forgiven < FORGIVEN_MAX;
        if forgiven {
            request.forgiven += 1;
        } else {
            self.fleet.answered(upstream, Answer::Refused, now);
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

// === impl QueueRefusal ===

impl QueueRefusal {
    /// Returns the reason in responses.
    fn reason(self) -> &'static str {
        match self {
            Self::Share => "upstream_share",
            Self::Full => "outbox_full",
        }
    }
}
