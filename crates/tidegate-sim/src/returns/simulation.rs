use super::advisor::{Advice, Advisor};
use super::case::{ReturnCase, ServiceShape};
use super::policy::ReturnPolicy;
use crate::agenda::{Agenda, Time};
use crate::random::Draw;
use std::collections::VecDeque;
use std::time::Duration;
use tidegate_core::rng::Rng;

/// The mean time between a client and the server, one way; drawn from half to one and a half of it.
const NETWORK_MS: f64 = 0.5;

/// All clients begin within this time.
const START_MS: f64 = 10.0;

/// The period of the gateway's observations, in nanoseconds.
const TICK: Time = 100_000_000;

/// Figures of one run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReturnFigures {
    /// The time until all requests were done.
    pub makespan: Duration,
    /// The mean time from the first attempt of a request to its end.
    pub completion_mean: Duration,
    /// Attempts for each request.
    pub attempts: f64,
    /// The median of the advised waits; zero without refusals.
    pub advice_p50: Duration,
}

/// One client.
#[derive(Clone, Copy, Debug, Default)]
struct Client {
    left: u32,
    first_at: Time,
    attempts: u32,
    wait: Duration,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    /// An attempt reaches the server.
    Arrive(usize),
    /// A request ends at the server, which had it since this time.
    End(usize, Time),
    /// A response reaches its client.
    Done(usize),
    /// The server observes its load.
    Tick,
}

#[derive(Debug)]
struct Simulation<'a> {
    case: &'a ReturnCase,
    policy: ReturnPolicy,
    advice: Advice,
    agenda: Agenda<Event>,
    clients: Vec<Client>,
    queue: VecDeque<usize>,
    free: u32,
    network: Rng,
    services: Rng,
    jitter: Rng,
    attempts: u64,
    advised: Vec<Duration>,
    completion_ns: u128,
}

/// Runs a case with one policy; `None` if it takes more than `attempts_max` attempts for each request.
#[must_use]
pub fn run(
    case: &ReturnCase,
    advisor: Advisor,
    policy: ReturnPolicy,
    seed: u64,
    attempts_max: f64,
) -> Option<ReturnFigures> {
    let mut seeds = Rng::new(seed);
    let mut simulation = Simulation {
        case,
        policy,
        advice: Advice::new(advisor, case.slots),
        agenda: Agenda::default(),
        clients: vec![
            Client { left: case.requests_each, ..Client::default() };
            case.clients as usize
        ],
        queue: VecDeque::new(),
        free: case.slots,
        network: seeds.fork(),
        services: seeds.fork(),
        jitter: seeds.fork(),
        attempts: 0,
        advised: Vec::new(),
        completion_ns: 0,
    };
    simulation.run((attempts_max * case.requests() as f64) as u64)
}

// === impl Simulation ===

impl Simulation<'_> {
    fn run(&mut self, attempts_max: u64) -> Option<ReturnFigures> {
        for client in 0..self.clients.len() {
            let at = nanos(START_MS * self.network.fraction());
            self.clients[client].first_at = at;
            self.agenda.plan(at, Event::Arrive(client));
        }
        self.agenda.plan(0, Event::Tick);
        let (mut left, mut makespan) = (self.case.requests(), 0);
        while left > 0 {
            let (now, event) = self.agenda.next()?;
            match event {
                Event::Tick => {
                    self.advice.tick(now);
                    self.agenda.plan(now + TICK, Event::Tick);
                }
                Event::Arrive(client) => self.arrive(client, now),
                Event::End(client, since) => self.end(client, since, now),
                Event::Done(client) => {
                    (left, makespan) = (left - 1, now);
                    self.done(client, now);
                }
            }
            if self.attempts > attempts_max {
                return None;
            }
        }
        Some(self.figures(makespan))
    }

    fn arrive(&mut self, client: usize, now: Time) {
        self.attempts += 1;
        self.clients[client].attempts += 1;
        if self.free > 0 {
            self.serve(client, now);
            return;
        }
        if self.policy == ReturnPolicy::Queue {
            self.queue.push_back(client);
            return;
        }
        // As responses do: in whole milliseconds.
        let advice = Duration::from_millis(self.advice.refuse(now).as_millis() as u64);
        self.advised.push(advice);
        let Client { attempts, wait, .. } = self.clients[client];
        let wait = self.policy.wait(attempts, wait, advice, self.jitter.fraction());
        self.clients[client].wait = wait;
        let at = now + self.delay() + wait.as_nanos() as Time + self.delay();
        self.agenda.plan(at, Event::Arrive(client));
    }

    fn serve(&mut self, client: usize, now: Time) {
        self.free -= 1;
        self.advice.began(now);
        let mean_ms = self.case.service.as_secs_f64() * 1e3;
        let time = match self.case.shape {
            ServiceShape::Fixed => nanos(mean_ms),
            ServiceShape::Exponential => nanos(self.services.exponential(mean_ms)),
        };
        self.agenda.plan(now + time, Event::End(client, now));
    }

    fn end(&mut self, client: usize, since: Time, now: Time) {
        self.free += 1;
        self.advice.ended(now, Duration::from_nanos(now - since));
        let at = now + self.delay();
        self.agenda.plan(at, Event::Done(client));
        if let Some(next) = self.queue.pop_front() {
            self.serve(next, now);
        }
    }

    fn done(&mut self, client: usize, now: Time) {
        let delay = self.delay();
        let client_now = &mut self.clients[client];
        self.completion_ns += u128::from(now - client_now.first_at);
        let left = client_now.left - 1;
        let next = now + self.case.pause.as_nanos() as Time;
        *client_now = Client { left, first_at: next, ..Client::default() };
        if left > 0 {
            self.agenda.plan(next + delay, Event::Arrive(client));
        }
    }

    fn delay(&mut self) -> Time {
        nanos(NETWORK_MS * (0.5 + self.network.fraction()))
    }

    fn figures(&mut self, makespan: Time) -> ReturnFigures {
        self.advised.sort_unstable();
        let requests = self.case.requests();
        ReturnFigures {
            makespan: Duration::from_nanos(makespan),
            completion_mean: Duration::from_nanos(
                (self.completion_ns / u128::from(requests)) as u64,
            ),
            attempts: self.attempts as f64 / requests as f64,
            advice_p50: self.advised.get(self.advised.len() / 2).copied().unwrap_or_default(),
        }
    }
}

fn nanos(ms: f64) -> Time {
    (ms * 1e6) as Time
}
