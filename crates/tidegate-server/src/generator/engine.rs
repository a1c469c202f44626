use super::clock::Clock;
use super::connect::{Connector, is_own_fault};
use super::driver::{Answer, Driver, Failure, Progress, Shot};
use super::event::{ConnectionId, Departure, Ended, Event, Link};
use super::flights::{Flight, Flights};
use super::line::{Line, Waiting};
use super::pool::Pool;
use super::prepared::Prepared;
use super::schedule::Schedule;
use super::stats::{Meter, ScheduleStats};
use std::io;
use std::time::Duration;

/// How often the driver's `tick` is called.
const TICK: Duration = Duration::from_millis(100);

/// Requests that are launched between two looks at what came back: more may be due than can be sent, and answers
/// must be read all the same.
const LAUNCHES_AT_ONCE: usize = 128;

/// Connections that are being opened at once, at most. What falls due while the generator or the target stands
/// still must not become as many handshakes in one moment: they would take the processor from the schedule, and
/// connections that come free meanwhile serve most of what waits. On loopback one takes some 50 µs, so 64 at a
/// time are still thousands in a second.
const OPENING_MAX: usize = 64;

/// The generator between two events: what is due, what waits, what is under way. It does no waiting itself.
pub(super) struct Engine<D> {
    driver: D,
    clock: Clock,
    templates: Vec<Prepared>,
    schedule: Schedule,
    line: Line,
    pool: Pool,
    flights: Flights,
    meter: Meter,
    connector: Connector,
    /// Requests that one connection takes.
    streams: usize,
    grace: Duration,
    next_tick: Duration,
    is_stopped: bool,
}

// === impl Engine ===

impl<D: Driver> Engine<D> {
    pub fn new(
        driver: D,
        templates: Vec<Prepared>,
        connector: Connector,
        limits: Limits,
    ) -> io::Result<Self> {
        Ok(Self {
            driver,
            clock: connector.clock,
            line: Line::new(templates.iter().map(|template| template.deadline)),
            templates,
            schedule: Schedule::default(),
            pool: Pool::new(limits.connections),
            flights: Flights::default(),
            meter: Meter::new()?,
            connector,
            streams: limits.streams,
            grace: limits.grace,
            next_tick: TICK,
            is_stopped: false,
        })
    }

    pub fn start(&mut self) {
        self.driver.started(self.clock.started_at());
    }

    /// Does all that time asks for. When to come again, or none when the run is over.
    pub fn advance(&mut self) -> Option<Duration> {
        let now = self.clock.now();
        self.expire(now);
        for _ in 0..LAUNCHES_AT_ONCE {
            let Some(shot) = self.schedule.take(now, || self.driver.next()) else { break };
            self.launch(shot, now);
        }
        self.tick(now);
        match self.is_over(now) {
            true => None,
            false => Some(self.wake_at()),
        }
    }

    pub fn handle(&mut self, event: Event) {
        match event {
            Event::Ended(ended) => self.landed(ended),
            Event::Free(id) => self.pool.release(id),
            Event::Opened(opened) => {
                self.meter.connected(opened.took);
                self.pool.opened(opened);
            }
            Event::NotOpened(error) => self.not_opened(&error),
            Event::Room(id, room) => self.pool.set_room(id, room),
            Event::Closed(id) => self.closed(id),
            Event::Returned { flight, worked } => self.returned(flight, worked),
        }
    }

    /// Gives free connections to those that wait, and opens more.
    pub fn serve(&mut self) {
        while self.line.len() > 0 && self.depart() {}
        let needed = self.line.len().div_ceil(self.streams).min(OPENING_MAX);
        while self.pool.opening() < needed
            && let Some(id) = self.pool.begin()
        {
            self.connector.spawn(id);
        }
    }

    /// Ends what has not ended, and tells how it went.
    pub fn finish(mut self) -> (D, ScheduleStats) {
        let now = self.clock.now();
        self.is_stopped = true;
        let waiting: Vec<_> = std::iter::from_fn(|| self.line.pop()).collect();
        for Flight { shot, given, waited } in self.flights.drain() {
            self.meter.sent(given.saturating_sub(shot.due), waited);
            self.conclude(shot, Some(given), now, Err(Failure::Deadline));
        }
        let whose = self.whose_wait();
        for Waiting { shot, .. } in waiting {
            self.fail_unsent(shot, now, Failure::Unsent, whose);
        }
        for shot in self.schedule.drain() {
            self.refuse(shot, now);
        }
        (self.driver, self.meter.finish(self.pool.most()))
    }

    fn launch(&mut self, shot: Shot, now: Duration) {
        if usize::from(shot.template) >= self.templates.len() {
            return self.refuse(shot, now);
        }
        self.meter.due();
        if let Err(shot) = self.line.push(shot, self.clock.now()) {
            return self.fail_unsent(shot, now, Failure::Unsent, Whose::Generator);
        }
        self.serve();
        // Those in front of it have all that is being opened, and no more may be.
        let opening = self.pool.opening();
        if self.line.len() > opening * self.streams && !self.pool.has_room() {
            self.meter.no_connection();
        }
    }

    /// Sends the request that has waited longest, if there is a connection for it.
    fn depart(&mut self) -> bool {
        let Some((id, connection)) = self.pool.take() else { return false };
        let Some(Waiting { shot, since, .. }) = self.line.pop() else { return false };
        let template = &self.templates[usize::from(shot.template)];
        let now = self.clock.now();
        let Some(request) = template.request(&shot) else {
            self.pool.release(id);
            self.fail_unsent(shot, now, Failure::Unsent, Whose::Generator);
            return true;
        };
        let deadline = template.waits_until(&shot);
        let flight =
            self.flights.add(Flight { shot, given: now, waited: now.saturating_sub(since) });
        let departure = Departure { flight, request, deadline };
        let is_gone = match &connection.link {
            Link::Http2(link) => {
                link.depart(departure);
                false
            }
            Link::Http1(link) => link.try_send(departure).is_err(),
        };
        if is_gone {
            let worked = connection.worked;
            self.pool.remove(id);
            self.returned(flight, worked);
        }
        true
    }

    fn landed(&mut self, ended: Ended) {
        let Ended { connection, flight, sent, at, result } = ended;
        let Some(flight) = self.flights.remove(flight) else { return };
        if let Some(connection) = self.pool.get_mut(connection) {
            connection.worked |= result.is_ok();
        }
        let Flight { shot, waited, .. } = flight;
        self.meter.sent(sent.saturating_sub(shot.due), waited);
        // An answer that is read too late is none, also where the timer for it was late itself.
        let template = &self.templates[usize::from(shot.template)];
        let is_late = template.waits_until(&shot).is_some_and(|until| at > until);
        let result = match result {
            Ok(_) if is_late => Err(Failure::Deadline),
            Ok(ref head) => Ok(&**head),
            Err(failure) => Err(failure),
        };
        self.conclude(shot, Some(sent), at, result);
    }

    fn returned(&mut self, flight: usize, worked: bool) {
        let Some(Flight { shot, given, waited }) = self.flights.remove(flight) else { return };
        match worked {
            true => self.line.push_front(shot, given.saturating_sub(waited)),
            false => {
                self.fail_unsent(shot, self.clock.now(), Failure::Connect, Whose::Target);
            }
        }
    }

    /// Who waits while an unused connection is closed waited for that one: if it did not fail, a server that
    /// closes what it accepts would be asked for ever.
    fn closed(&mut self, id: ConnectionId) {
        if let Some(connection) = self.pool.remove(id)
            && !connection.was_used
        {
            self.fail_oldest(Whose::Target);
        }
    }

    fn not_opened(&mut self, error: &io::Error) {
        self.pool.not_opened();
        tracing::debug!(%error, "no connection");
        let whose = match is_own_fault(error) {
            true => {
                self.meter.out_of_sockets();
                Whose::Generator
            }
            false => Whose::Target,
        };
        self.fail_oldest(whose);
    }

    fn fail_oldest(&mut self, whose: Whose) {
        if let Some(Waiting { shot, .. }) = self.line.pop() {
            self.fail_unsent(shot, self.clock.now(), Failure::Connect, whose);
        }
    }

    fn expire(&mut self, now: Duration) {
        while let Some(shot) = self.line.pop_expired(now) {
            let whose = self.whose_wait();
            self.fail_unsent(shot, now, Failure::Deadline, whose);
        }
    }

    /// Who keeps those waiting that wait in line: where the generator may open more connections it does, and
    /// then it is the target that does not take them.
    fn whose_wait(&self) -> Whose {
        match self.pool.is_full() {
            true => Whose::Generator,
            false => Whose::Target,
        }
    }

    fn tick(&mut self, now: Duration) {
        if now < self.next_tick {
            return;
        }
        self.next_tick = now + TICK;
        let progress = Progress {
            in_flight: self.flights.len(),
            waiting: self.line.len(),
            connections: self.pool.open(),
        };
        self.is_stopped |= !self.driver.tick(now, &progress);
    }

    fn is_over(&self, now: Duration) -> bool {
        let is_idle = self.flights.len() == 0 && self.line.len() == 0;
        let is_last = |last: Duration| is_idle || now >= last.saturating_add(self.grace);
        self.is_stopped || self.schedule.last_due().is_some_and(is_last)
    }

    fn wake_at(&self) -> Duration {
        let over = self.schedule.last_due().map(|last| last.saturating_add(self.grace));
        let due = self.schedule.next_due();
        let times = [due, self.line.next_expiry(), over];
        times.into_iter().flatten().fold(self.next_tick, Duration::min)
    }

    /// One that never was sent.
    fn fail_unsent(&mut self, shot: Shot, at: Duration, failure: Failure, whose: Whose) {
        match whose {
            Whose::Generator => self.meter.unsent(),
            Whose::Target => self.meter.not_connected(),
        }
        self.conclude(shot, None, at, Err(failure));
    }

    /// One that is not even let into the line.
    fn refuse(&mut self, shot: Shot, at: Duration) {
        self.meter.due();
        self.fail_unsent(shot, at, Failure::Unsent, Whose::Generator);
    }

    fn conclude(
        &mut self,
        shot: Shot,
        sent: Option<Duration>,
        at: Duration,
        result: Result<&super::Head, Failure>,
    ) {
        let is_unsent = matches!(result, Err(Failure::Unsent));
        let answer = Answer { sent, at, result };
        let Some(again) = self.driver.ended(shot, &answer) else { return };
        if is_unsent {
            return;
        }
        let kept = if self.is_stopped { Err(again) } else { self.schedule.hand_back(again) };
        if let Err(again) = kept {
            self.refuse(again, at);
        }
    }
}

/// Who is to blame for a request of which nothing was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Generator,
    Target,
}

/// The numbers of a configuration that the engine keeps to.
pub(super) struct Limits {
    pub connections: usize,
    pub streams: usize,
    pub grace: Duration,
}
