//! The way of an admitted request to a worker: it is offered to one after the other until one answers.

use super::check::Broken;
use super::event::Event;
use super::fleet::{Ask, NoRoute};
use super::line::{Entered, LineRefusal};
use super::request::{Last, State};
use super::simulation::{Simulation, Todo};
use super::worker::Taken;
use crate::measure::Attempt;
use std::time::Duration;
use tidegate_core::routing::Answer;

/// How often a connection may turn out to be closed just when it is used again, before its worker is taken for
/// broken.
const FORGIVEN_MAX: u8 = 1;

impl Simulation<'_> {
    /// Finds a worker for a request, and a place in its line.
    pub(super) fn offer(&mut self, id: u32) -> Result<(), Broken> {
        let (priority, charge) = (self.class(id).priority, self.class(id).charge);
        loop {
            let tried = self.requests.get(id).tried;
            if tried.is_full() {
                return self.give_up(id);
            }
            self.decisions += 1;
            let ask = Ask { priority, charge, tried };
            let (worker, ticket) = match self.fleet.route(&ask, self.chance.next(), self.now)? {
                Ok(placed) => placed,
                Err(NoRoute::Exhausted) => return self.give_up(id),
                Err(NoRoute::Busy(wait)) => return self.refused(id, "all_busy", Some(wait)),
            };
            let request = self.requests.get_mut(id);
            request.ticket = Some(ticket);
            request.worker = worker as u16;
            self.decisions += 1;
            match self.lines[worker].enter(id, priority, &self.requests) {
                Ok(Entered::Passed(share)) => {
                    self.requests.get_mut(id).share = share;
                    return self.turn(id);
                }
                Ok(Entered::Waits { share, displaced }) => {
                    self.requests.get_mut(id).share = share;
                    let stamp = self.set_state(id, State::Line);
                    self.todo.extend(displaced.map(Todo::Displaced));
                    self.agenda
                        .plan(self.now + self.settings.wait_max, Event::WaitedMax { id, stamp });
                    return self.checks.lined_up(worker, self.lines[worker].waiting());
                }
                Err(refusal) => {
                    self.leave_worker(id);
                    let request = self.requests.get_mut(id);
                    request.tried.insert(worker as u16);
                    request.last = Last::Line(refusal.reason());
                }
            }
        }
    }

    /// Nobody is left to try.
    fn give_up(&mut self, id: u32) -> Result<(), Broken> {
        match self.requests.get(id).last {
            Last::Line(reason) => {
                let wait = self.fleet.retry_after();
                self.refused(id, reason, Some(wait))
            }
            Last::None | Last::Broken => {
                self.failed(id);
                Ok(())
            }
        }
    }

    /// A slot at a worker is free: the next one's turn has come.
    pub(super) fn pass_on(&mut self, worker: usize) -> Result<(), Broken> {
        match self.lines[worker].pass_on(&self.requests) {
            Some(id) => self.turn(id),
            None => Ok(()),
        }
    }

    /// A request's turn has come: it is sent, if its worker can be reached.
    fn turn(&mut self, id: u32) -> Result<(), Broken> {
        let stamp = self.set_state(id, State::Sent);
        let now = self.now;
        let request = self.requests.get_mut(id);
        let worker = usize::from(request.worker);
        self.checks.sent(worker)?;
        if self.workers[worker].trouble.dead {
            self.fleet.answered(worker, Answer::Refused, now);
            self.fleet.set_up(worker, false);
            request.tried.insert(worker as u16);
            request.last = Last::Broken;
            self.offer_again(id);
            return Ok(());
        }
        if request.forgiven >= FORGIVEN_MAX {
            request.tried.insert(worker as u16);
        }
        request.sent_at = now;
        if let Some(ticket) = &mut request.ticket {
            self.fleet.sent(worker, ticket, now);
        }
        let (began, class, work) = (request.began, request.class, request.work);
        let taken = self.workers[worker].take(id, work, now);
        if taken != Taken::Full {
            self.recorder.attempt(Duration::from_nanos(began), class, Attempt::LetIn);
        }
        match taken {
            Taken::Until(at) => self.agenda.plan(at, Event::Done { id, stamp }),
            Taken::Waits | Taken::Swallowed => {}
            Taken::Fails => {
                self.fleet.answered(worker, FAILURE, now);
                self.failed(id);
            }
            Taken::Full => {
                self.fleet.answered(worker, Answer::Refused, now);
                return self.refused(id, "worker_overloaded", None);
            }
        }
        Ok(())
    }

    /// A place at a worker is free: it goes on with what waits there.
    pub(super) fn work(&mut self, worker: usize) {
        while let Some((id, until)) = self.workers[worker].next(self.now) {
            let stamp = self.requests.get(id).stamp;
            self.agenda.plan(until, Event::Done { id, stamp });
        }
    }

    /// A worker has done its work.
    pub(super) fn done(&mut self, id: u32) -> Result<(), Broken> {
        let request = self.requests.get(id);
        let (worker, work) = (usize::from(request.worker), request.work);
        let took = Duration::from_nanos(self.now - request.sent_at);
        let at = &mut self.workers[worker];
        // Its answer does not get through. What was asked is lost when the network is back.
        if at.trouble.cut {
            return Ok(());
        }
        at.end(work);
        at.totals.good += 1;
        self.fleet.answered(worker, Answer::Began(took), self.now);
        self.todo.push_back(Todo::Work(worker));
        self.good(id, Some(worker as u16));
        Ok(())
    }

    /// It waited in a line for as long as it may.
    pub(super) fn waited(&mut self, id: u32) -> Result<(), Broken> {
        let worker = usize::from(self.requests.get(id).worker);
        self.lines[worker].leave();
        let wait = self.fleet.retry_after();
        self.refused(id, "outbox_wait", Some(wait))
    }

    /// It had to make room in a line.
    pub(super) fn displaced(&mut self, id: u32) -> Result<(), Broken> {
        let wait = self.fleet.retry_after();
        self.refused(id, "outbox_full", Some(wait))
    }

    /// Its connection broke before there was an answer. What can be sent twice is, within the budget.
    pub(super) fn broke(&mut self, id: u32) {
        let idempotent = self.class(id).idempotent;
        let (now, at) = (self.now, self.at());
        let request = self.requests.get_mut(id);
        let worker = usize::from(request.worker);
        request.last = Last::Broken;
        let forgiven = idempotent && request.forgiven < FORGIVEN_MAX;
        if forgiven {
            request.forgiven += 1;
        } else {
            self.fleet.answered(worker, Answer::Refused, now);
        }
        if forgiven || (idempotent && self.budget.try_retry(at)) {
            self.offer_again(id);
        } else {
            self.workers[worker].totals.failed += 1;
            self.failed(id);
        }
    }

    fn offer_again(&mut self, id: u32) {
        self.leave_worker(id);
        self.todo.push_back(Todo::Offer(id));
    }
}

/// What the gateway makes of the 503 of a worker that fails. However quickly it came, that is not speed.
const FAILURE: Answer = Answer::Refused;

// === impl LineRefusal ===

impl LineRefusal {
    /// The reason in answers.
    fn reason(self) -> &'static str {
        match self {
            Self::Share => "upstream_share",
            Self::Full => "outbox_full",
        }
    }
}
