use super::clock::Clock;
use super::connection::{
    ConnectionId, Connector, Dispatch, Ended, Event, Pool, is_local_exhaustion, open,
};
use super::driver::{Answer, Driver, Failure, Progress, ScheduledRequest};
use super::in_flight::{InFlight, InFlightRequest};
use super::prepared::Prepared;
use super::queue::{WaitQueue, Waiting};
use super::schedule::Schedule;
use super::stats::{Meter, ScheduleStats};
use std::io;
use std::time::Duration;

/// Interval of the driver's `tick`.
const TICK: Duration = Duration::from_millis(100);

/// Limit of requests between two polls of responses: responses must be read even under overload.
const REQUESTS_PER_POLL: usize = 128;

/// Limit of connections being opened. After a stall all due requests would start handshakes, which take CPU time
/// from the schedule, while freed connections serve most of them. On loopback a handshake takes about 50 µs, so 64
/// at a time are still thousands per second.
const OPENING_MAX: usize = 64;

/// State of a run: scheduled, queued and in-flight requests. It never waits.
pub(super) struct Engine<D> {
    driver: D,
    clock: Clock,
    templates: Vec<Prepared>,
    schedule: Schedule,
    queue: WaitQueue,
    pool: Pool,
    in_flight: InFlight,
    meter: Meter,
    connector: Connector,
    /// Streams per connection.
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
            queue: WaitQueue::new(templates.iter().map(|template| template.deadline)),
            templates,
            schedule: Schedule::default(),
            pool: Pool::new(limits.connections),
            in_flight: InFlight::default(),
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

    /// Does all that is due. Returns the time of the next call; `None` at the end of the run.
    pub fn advance(&mut self) -> Option<Duration> {
        let now = self.clock.now();
        self.expire(now);
        for _ in 0..REQUESTS_PER_POLL {
            let Some(scheduled) = self.schedule.take(now, || self.driver.next()) else { break };
            self.enqueue(scheduled, now);
        }
        self.tick(now);
        match self.is_over(now) {
            true => None,
            false => Some(self.wake_at()),
        }
    }

    pub fn handle(&mut self, event: Event) {
        match event {
            Event::Ended(ended) => self.request_ended(ended),
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

    /// Sends queued requests on free connections, and opens more connections.
    pub fn serve(&mut self) {
        while self.queue.len() > 0 && self.dispatch_next() {}
        let needed = self.queue.len().div_ceil(self.streams).min(OPENING_MAX);
        while self.pool.opening() < needed
            && let Some(id) = self.pool.begin()
        {
            open(&self.connector, id);
        }
    }

    /// Ends all open requests; returns the driver and the schedule figures.
    pub fn finish(mut self) -> (D, ScheduleStats) {
        let now = self.clock.now();
        self.is_stopped = true;
        let waiting: Vec<_> = std::iter::from_fn(|| self.queue.pop()).collect();
        for InFlightRequest { scheduled, dispatched, waited } in self.in_flight.drain() {
            self.meter.sent(dispatched.saturating_sub(scheduled.due), waited);
            self.conclude(scheduled, Some(dispatched), now, Err(Failure::Deadline));
        }
        let cause = self.cause_of_wait();
        for Waiting { scheduled, .. } in waiting {
            self.fail_unsent(scheduled, now, Failure::Unsent, cause);
        }
        for scheduled in self.schedule.drain() {
            self.refuse(scheduled, now);
        }
        (self.driver, self.meter.finish(self.pool.open_max()))
    }

    fn enqueue(&mut self, scheduled: ScheduledRequest, now: Duration) {
        if usize::from(scheduled.template) >= self.templates.len() {
            return self.refuse(scheduled, now);
        }
        self.meter.due();
        if let Err(scheduled) = self.queue.push(scheduled, self.clock.now()) {
            return self.fail_unsent(scheduled, now, Failure::Unsent, Cause::Generator);
        }
        self.serve();
        // Earlier requests need all connections being opened, and no more are allowed.
        let opening = self.pool.opening();
        if self.queue.len() > opening * self.streams && !self.pool.has_room() {
            self.meter.no_connection();
        }
    }

    /// Sends the oldest queued request, if a connection is free.
    fn dispatch_next(&mut self) -> bool {
        let Some((id, connection)) = self.pool.take() else { return false };
        let Some(Waiting { scheduled, since, .. }) = self.queue.pop() else { return false };
        let template = &self.templates[usize::from(scheduled.template)];
        let now = self.clock.now();
        let Some(request) = template.request(&scheduled) else {
            self.pool.release(id);
            self.fail_unsent(scheduled, now, Failure::Unsent, Cause::Generator);
            return true;
        };
        let deadline = template.deadline_of(&scheduled);
        let flight = self.in_flight.add(InFlightRequest {
            scheduled,
            dispatched: now,
            waited: now.saturating_sub(since),
        });
        let dispatch = Dispatch { flight, request, deadline };
        if !connection.link.dispatch(dispatch) {
            let worked = connection.worked;
            self.pool.remove(id);
            self.returned(flight, worked);
        }
        true
    }

    fn request_ended(&mut self, ended: Ended) {
        let Ended { connection, flight, sent, at, result } = ended;
        let Some(flight) = self.in_flight.remove(flight) else { return };
        if let Some(connection) = self.pool.get_mut(connection) {
            connection.worked |= result.is_ok();
        }
        let InFlightRequest { scheduled, waited, .. } = flight;
        self.meter.sent(sent.saturating_sub(scheduled.due), waited);
        // A response after the deadline does not count, even if the timer was late.
        let template = &self.templates[usize::from(scheduled.template)];
        let is_late = template.deadline_of(&scheduled).is_some_and(|until| at > until);
        let result = match result {
            Ok(_) if is_late => Err(Failure::Deadline),
            Ok(ref head) => Ok(&**head),
            Err(failure) => Err(failure),
        };
        self.conclude(scheduled, Some(sent), at, result);
    }

    fn returned(&mut self, flight: usize, worked: bool) {
        let Some(InFlightRequest { scheduled, dispatched, waited }) = self.in_flight.remove(flight)
        else {
            return;
        };
        match worked {
            true => self.queue.push_front(scheduled, dispatched.saturating_sub(waited)),
            false => {
                self.fail_unsent(scheduled, self.clock.now(), Failure::Connect, Cause::Target);
            }
        }
    }

    /// Fails the oldest queued request when an unused connection is closed. Otherwise a server that closes what it
    /// accepts would be retried forever.
    fn closed(&mut self, id: ConnectionId) {
        if let Some(connection) = self.pool.remove(id)
            && !connection.was_used
        {
            self.fail_oldest(Cause::Target);
        }
    }

    fn not_opened(&mut self, error: &io::Error) {
        self.pool.not_opened();
        tracing::debug!(%error, "connection failed");
        let cause = match is_local_exhaustion(error) {
            true => {
                self.meter.out_of_sockets();
                Cause::Generator
            }
            false => Cause::Target,
        };
        self.fail_oldest(cause);
    }

    fn fail_oldest(&mut self, cause: Cause) {
        if let Some(Waiting { scheduled, .. }) = self.queue.pop() {
            self.fail_unsent(scheduled, self.clock.now(), Failure::Connect, cause);
        }
    }

    fn expire(&mut self, now: Duration) {
        while let Some(scheduled) = self.queue.pop_expired(now) {
            let cause = self.cause_of_wait();
            self.fail_unsent(scheduled, now, Failure::Deadline, cause);
        }
    }

    /// Cause of waiting in the queue: the generator if it has all its connections, else the target.
    fn cause_of_wait(&self) -> Cause {
        match self.pool.is_full() {
            true => Cause::Generator,
            false => Cause::Target,
        }
    }

    fn tick(&mut self, now: Duration) {
        if now < self.next_tick {
            return;
        }
        self.next_tick = now + TICK;
        let progress = Progress {
            in_flight: self.in_flight.len(),
            waiting: self.queue.len(),
            connections: self.pool.open(),
        };
        self.is_stopped |= !self.driver.tick(now, &progress);
    }

    fn is_over(&self, now: Duration) -> bool {
        let is_idle = self.in_flight.len() == 0 && self.queue.len() == 0;
        let is_last = |last: Duration| is_idle || now >= last.saturating_add(self.grace);
        self.is_stopped || self.schedule.last_due().is_some_and(is_last)
    }

    fn wake_at(&self) -> Duration {
        let over = self.schedule.last_due().map(|last| last.saturating_add(self.grace));
        let due = self.schedule.next_due();
        let times = [due, self.queue.next_expiry(), over];
        times.into_iter().flatten().fold(self.next_tick, Duration::min)
    }

    /// Fails a request that was never sent.
    fn fail_unsent(
        &mut self,
        scheduled: ScheduledRequest,
        at: Duration,
        failure: Failure,
        cause: Cause,
    ) {
        match cause {
            Cause::Generator => self.meter.unsent(),
            Cause::Target => self.meter.not_connected(),
        }
        self.conclude(scheduled, None, at, Err(failure));
    }

    /// Fails a request that does not enter the queue.
    fn refuse(&mut self, scheduled: ScheduledRequest, at: Duration) {
        self.meter.due();
        self.fail_unsent(scheduled, at, Failure::Unsent, Cause::Generator);
    }

    fn conclude(
        &mut self,
        scheduled: ScheduledRequest,
        sent: Option<Duration>,
        at: Duration,
        result: Result<&super::Reply, Failure>,
    ) {
        let is_unsent = matches!(result, Err(Failure::Unsent));
        let answer = Answer { sent, at, result };
        let Some(again) = self.driver.ended(scheduled, &answer) else { return };
        if is_unsent {
            return;
        }
        let result = if self.is_stopped { Err(again) } else { self.schedule.reschedule(again) };
        if let Err(again) = result {
            self.refuse(again, at);
        }
    }
}

/// Cause of a request that was never sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    Generator,
    Target,
}

/// Limits of the engine.
pub(super) struct Limits {
    pub connections: usize,
    pub streams: usize,
    pub grace: Duration,
}
