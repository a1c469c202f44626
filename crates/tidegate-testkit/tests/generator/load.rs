//! Drivers for the tests, and what they saw.

use http::StatusCode;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};
use tidegate_testkit::generator::{
    Answer, Driver, Failure, GeneratorConfig, ScheduleStats, ScheduledRequest, Template, run,
};

pub const MS: Duration = Duration::from_millis(1);

/// Result of one request.
#[derive(Clone, Debug)]
pub struct Seen {
    pub id: u64,
    pub due: Duration,
    /// The same as `at` when nothing of it was sent.
    pub sent: Duration,
    pub was_sent: bool,
    pub at: Duration,
    pub result: Result<StatusCode, Failure>,
    pub body: Vec<u8>,
}

/// Sends what it is given, and remembers all that came of it.
pub struct Plan {
    scheduled_requests: std::vec::IntoIter<ScheduledRequest>,
    pub started: Instant,
    pub seen: Vec<Seen>,
}

/// The next request is due so long after the last one has ended, and after what has to happen between the two.
pub struct OneByOne<F> {
    first: Option<ScheduledRequest>,
    left: u64,
    gap: Duration,
    between: F,
    started: Instant,
    pub seen: Vec<Seen>,
}

/// A run and its end.
pub struct Ran {
    pub plan: Plan,
    pub schedule: ScheduleStats,
    pub took: Duration,
}

// === impl Seen ===

impl Seen {
    pub fn new(scheduled: &ScheduledRequest, answer: &Answer<'_>) -> Self {
        Self {
            id: scheduled.id,
            due: scheduled.due,
            sent: answer.sent.unwrap_or(answer.at),
            was_sent: answer.sent.is_some(),
            at: answer.at,
            result: answer.result.map(|head| head.status),
            body: answer.result.map(|head| head.body.to_vec()).unwrap_or_default(),
        }
    }

    pub fn latency(&self) -> Duration {
        self.at - self.due
    }
}

// === impl Plan ===

impl Plan {
    /// Requests at these times, numbered from 0. The number is also told to the server.
    pub fn at(times: impl IntoIterator<Item = Duration>) -> Self {
        let scheduled_requests: Vec<_> =
            times.into_iter().zip(0..).map(|(due, id)| scheduled(due, id)).collect();
        Self {
            scheduled_requests: scheduled_requests.into_iter(),
            started: Instant::now(),
            seen: Vec::new(),
        }
    }

    pub fn add(&mut self, scheduled_requests: impl IntoIterator<Item = ScheduledRequest>) {
        self.scheduled_requests = self
            .scheduled_requests
            .by_ref()
            .chain(scheduled_requests)
            .collect::<Vec<_>>()
            .into_iter();
    }

    pub fn failures(&self, failure: Failure) -> usize {
        self.seen.iter().filter(|seen| seen.result == Err(failure)).count()
    }

    pub fn ok(&self) -> usize {
        self.seen.iter().filter(|seen| seen.result == Ok(StatusCode::OK)).count()
    }
}

impl Driver for Plan {
    fn started(&mut self, start: Instant) {
        self.started = start;
    }

    fn next(&mut self) -> Option<ScheduledRequest> {
        self.scheduled_requests.next()
    }

    fn ended(
        &mut self,
        scheduled: ScheduledRequest,
        answer: &Answer<'_>,
    ) -> Option<ScheduledRequest> {
        self.seen.push(Seen::new(&scheduled, answer));
        None
    }
}

// === impl OneByOne ===

impl<F: FnMut(u64)> OneByOne<F> {
    /// `between` is told how many have ended, and may wait.
    pub fn new(count: u64, gap: Duration, between: F) -> Self {
        let first = Some(scheduled(Duration::ZERO, 0));
        Self { first, left: count, gap, between, started: Instant::now(), seen: Vec::new() }
    }
}

impl<F: FnMut(u64)> Driver for OneByOne<F> {
    fn started(&mut self, start: Instant) {
        self.started = start;
    }

    fn next(&mut self) -> Option<ScheduledRequest> {
        self.first.take()
    }

    fn ended(&mut self, ended: ScheduledRequest, answer: &Answer<'_>) -> Option<ScheduledRequest> {
        self.seen.push(Seen::new(&ended, answer));
        self.left -= 1;
        if self.left == 0 {
            return None;
        }
        (self.between)(self.seen.len() as u64);
        Some(scheduled(self.started.elapsed() + self.gap, ended.id + 1))
    }
}

/// A request whose number the server can read.
pub fn scheduled(due: Duration, id: u64) -> ScheduledRequest {
    ScheduledRequest { suffix: format!("?id={id}"), ..ScheduledRequest::new(due, 0, id) }
}

pub fn every(gap: Duration, count: u32) -> impl Iterator<Item = Duration> {
    (0..count).map(move |number| gap * number)
}

pub fn at_once(count: u32) -> impl Iterator<Item = Duration> {
    every(Duration::ZERO, count)
}

/// Configuration of all tests, with short timeouts.
pub fn config(port: u16) -> GeneratorConfig {
    let target = format!("http://127.0.0.1:{port}").parse().expect("a URI");
    GeneratorConfig { grace: Duration::from_secs(5), ..GeneratorConfig::new(target) }
}

pub fn get(deadline: Option<Duration>) -> Vec<Template> {
    vec![Template { deadline, ..Template::get("/") }]
}

pub fn ran(config: GeneratorConfig, templates: Vec<Template>, plan: Plan) -> Ran {
    let begin = Instant::now();
    let (plan, schedule) = run(config, templates, plan).expect("the generator runs");
    let took = begin.elapsed();
    // Whatever happens, each request that was due ended once, and is accounted for.
    assert_eq!(schedule.due, plan.seen.len() as u64);
    assert_eq!(schedule.due, schedule.sent + schedule.unsent + schedule.not_connected);
    let sent = plan.seen.iter().filter(|seen| seen.was_sent).count();
    assert_eq!(schedule.sent, sent as u64);
    Ran { plan, schedule, took }
}

static MACHINE: RwLock<()> = RwLock::new(());

/// Holds the machine for a test that measures.
pub fn alone() -> RwLockWriteGuard<'static, ()> {
    MACHINE.write().unwrap_or_else(PoisonError::into_inner)
}

/// For a test that mostly waits: others of its kind may run meanwhile.
pub fn with_others() -> RwLockReadGuard<'static, ()> {
    MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}
