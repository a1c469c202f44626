//! Drivers for the tests, and what they saw.

use http::StatusCode;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};
use tidegate_server::generator::{
    Answer, Driver, Failure, GeneratorConfig, ScheduleStats, Shot, Template, run,
};

pub const MS: Duration = Duration::from_millis(1);

/// What came of one request.
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
    shots: std::vec::IntoIter<Shot>,
    pub started: Instant,
    pub seen: Vec<Seen>,
}

/// The next request is due so long after the last one has ended, and after what has to happen between the two.
pub struct OneByOne<F> {
    first: Option<Shot>,
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
    pub fn new(shot: &Shot, answer: &Answer<'_>) -> Self {
        Self {
            id: shot.id,
            due: shot.due,
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
        let shots: Vec<_> = times.into_iter().zip(0..).map(|(due, id)| shot(due, id)).collect();
        Self { shots: shots.into_iter(), started: Instant::now(), seen: Vec::new() }
    }

    pub fn add(&mut self, shots: impl IntoIterator<Item = Shot>) {
        self.shots = self.shots.by_ref().chain(shots).collect::<Vec<_>>().into_iter();
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

    fn next(&mut self) -> Option<Shot> {
        self.shots.next()
    }

    fn ended(&mut self, shot: Shot, answer: &Answer<'_>) -> Option<Shot> {
        self.seen.push(Seen::new(&shot, answer));
        None
    }
}

// === impl OneByOne ===

impl<F: FnMut(u64)> OneByOne<F> {
    /// `between` is told how many have ended, and may wait.
    pub fn new(count: u64, gap: Duration, between: F) -> Self {
        let first = Some(shot(Duration::ZERO, 0));
        Self { first, left: count, gap, between, started: Instant::now(), seen: Vec::new() }
    }
}

impl<F: FnMut(u64)> Driver for OneByOne<F> {
    fn started(&mut self, start: Instant) {
        self.started = start;
    }

    fn next(&mut self) -> Option<Shot> {
        self.first.take()
    }

    fn ended(&mut self, ended: Shot, answer: &Answer<'_>) -> Option<Shot> {
        self.seen.push(Seen::new(&ended, answer));
        self.left -= 1;
        if self.left == 0 {
            return None;
        }
        (self.between)(self.seen.len() as u64);
        Some(shot(self.started.elapsed() + self.gap, ended.id + 1))
    }
}

/// A request whose number the server can read.
pub fn shot(due: Duration, id: u64) -> Shot {
    Shot { suffix: format!("?id={id}"), ..Shot::new(due, 0, id) }
}

pub fn every(gap: Duration, count: u32) -> impl Iterator<Item = Duration> {
    (0..count).map(move |number| gap * number)
}

pub fn at_once(count: u32) -> impl Iterator<Item = Duration> {
    every(Duration::ZERO, count)
}

/// What all tests begin with: nobody waits long for what does not come.
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
