use super::Flaw;
use super::advice::Advice;
use super::check::{Broken, Checks};
use super::event::Event;
use super::fleet::Fleet;
use super::line::Line;
use super::request::{Slab, State};
use super::settings::Settings;
use super::trackers::Trackers;
use super::worker::Worker;
use crate::agenda::{Agenda, Time};
use crate::arrivals::{Arrival, Arrivals};
use crate::measure::Recorder;
use crate::random::SplitMix64;
use crate::report::Findings;
use crate::scenario::{Scenario, Workers};
use crate::violation::Violation;
use std::collections::VecDeque;
use std::time::Duration;
use tidegate_core::admission::MessagePriority;
use tidegate_core::retry::{BudgetLimits, RetryBudget};

/// How often the advisors look, the workers are asked for their load, and tried to be reached: what the server
/// does.
const OBSERVE_EVERY: Time = 100_000_000;
const SCRAPE_EVERY: Time = 250_000_000;
const PROBE_EVERY: Time = 1_000_000_000;

/// How long nothing may happen before what is still tight counts as latched: a report is believed for five
/// seconds.
const QUIET: Time = 6_000_000_000;

/// Runs a scenario of a gateway to its end, and on until everything is over.
///
/// # Errors
///
/// The first thing that must never be, and was: a defect of the decisions, or the flaw that was planted.
pub fn simulate(
    scenario: &Scenario,
    seed: u64,
    plant: Option<Flaw>,
) -> Result<Findings, Violation> {
    let Some(workers) = &scenario.workers else { return Ok(Findings::default()) };
    let settings = Settings::of(scenario, workers);
    let trackers = Trackers::new(&settings);
    let mut simulation = Simulation::new(scenario, workers, settings, &trackers, seed, plant);
    match simulation.run(Arrivals::new(scenario, seed)) {
        Ok(()) => Ok(simulation.into_findings()),
        Err(broken) => Err(broken.at(simulation.now, simulation.events)),
    }
}

pub(super) struct Simulation<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) settings: Settings,
    pub(super) plant: Option<Flaw>,
    pub(super) trackers: &'a Trackers,
    pub(super) advice: Advice,
    pub(super) advice_of_tenants: Vec<Advice>,
    pub(super) budget: RetryBudget,
    pub(super) fleet: Fleet,
    pub(super) lines: Vec<Line<'a>>,
    pub(super) workers: Vec<Worker>,
    pub(super) requests: Slab<'a>,
    pub(super) classes: Vec<ClassNow>,
    pub(super) agenda: Agenda<Event>,
    pub(super) todo: VecDeque<Todo>,
    pub(super) chance: SplitMix64,
    pub(super) recorder: Recorder,
    pub(super) checks: Checks,
    pub(super) now: Time,
    pub(super) end: Time,
    pub(super) decisions: u64,
    pub(super) events: u64,
    /// When the gateway's own processor has done all that came until now.
    pub(super) idle_at: Time,
    /// When the last one was let in, for the flaw of a raced limit.
    pub(super) let_in_at: Option<Time>,
    /// How many are over, for the flaw of a leaked permit.
    pub(super) over: u64,
}

/// What each request of a class has in common.
#[derive(Clone, Debug)]
pub(super) struct ClassNow {
    pub(super) priority: MessagePriority,
    pub(super) tenant: Option<usize>,
    pub(super) charge: tidegate_core::routing::Charge,
    /// Whether it can be sent twice: it has no body, so it is a GET.
    pub(super) idempotent: bool,
    pub(super) deadline: Option<Time>,
    pub(super) chance: SplitMix64,
}

/// What follows at once from what just happened.
#[derive(Clone, Copy, Debug)]
pub(super) enum Todo {
    /// A slot at this worker is free.
    PassOn(usize),
    /// A place at this worker is free.
    Work(usize),
    /// This request is to be offered to a worker.
    Offer(u32),
    /// This request had to make room in the line.
    Displaced(u32),
}

// === impl Simulation ===

impl<'a> Simulation<'a> {
    fn new(
        scenario: &'a Scenario,
        workers: &Workers,
        settings: Settings,
        trackers: &'a Trackers,
        seed: u64,
        plant: Option<Flaw>,
    ) -> Self {
        // Not the stream that arrivals are drawn from.
        let mut seeds = SplitMix64::new(!seed);
        let line = |share: &'a Option<_>| {
            Line::new(share.as_ref(), settings.concurrency, settings.line(plant))
        };
        let mut agenda = Agenda::default();
        for event in [Event::Observe, Event::Scrape, Event::Probe] {
            agenda.plan(0, event);
        }
        for (index, fault) in (0..).zip(&scenario.faults) {
            agenda.plan(nanos(fault.from_s), Event::Fault { index });
            agenda.plan(nanos(fault.until_s), Event::Fault { index });
        }
        Self {
            advice: Advice::new(settings.retry),
            advice_of_tenants: trackers
                .tenants
                .iter()
                .map(|_| Advice::new(settings.retry))
                .collect(),
            budget: RetryBudget::new(BudgetLimits::default()),
            fleet: Fleet::new(&settings, plant),
            lines: trackers.workers.iter().map(line).collect(),
            workers: (0..workers.count).map(|_| Worker::new(workers, seeds.fork())).collect(),
            requests: Slab::default(),
            classes: ClassNow::all(scenario, &mut seeds),
            agenda,
            todo: VecDeque::new(),
            chance: seeds.fork(),
            recorder: Recorder::new(scenario),
            checks: Checks::new(&settings),
            now: 0,
            end: nanos(scenario.duration_s),
            decisions: 0,
            events: 0,
            idle_at: 0,
            let_in_at: None,
            over: 0,
            scenario,
            settings,
            plant,
            trackers,
        }
    }

    fn run(&mut self, mut arrivals: Arrivals) -> Result<(), Broken> {
        let mut coming = arrivals.next();
        loop {
            let next_at = self.agenda.next_at();
            match coming {
                Some(arrival) if next_at.is_none_or(|at| arrival.at.as_nanos() as Time <= at) => {
                    self.arrive(arrival)?;
                    coming = arrivals.next();
                }
                _ => {
                    let Some((now, event)) = self.agenda.next() else { break };
                    self.now = now;
                    self.happen(event)?;
                }
            }
            self.settle()?;
            self.events += 1;
            self.checks.step(&self.trackers.gateway)?;
        }
        self.check_end()
    }

    fn arrive(&mut self, arrival: Arrival) -> Result<(), Broken> {
        self.now = arrival.at.as_nanos() as Time;
        self.recorder.due(arrival.at, arrival.class);
        let id = self.requests.insert(self.now, arrival.class, arrival.work);
        self.checks.offered(State::Away);
        self.ask(id)
    }

    fn happen(&mut self, event: Event) -> Result<(), Broken> {
        match event {
            Event::Answered { id, stamp } if self.requests.is_at(id, stamp) => self.answered(id),
            Event::Done { id, stamp } if self.requests.is_at(id, stamp) => self.done(id),
            Event::WaitedMax { id, stamp } if self.requests.is_at(id, stamp) => self.waited(id),
            Event::Return { id, stamp } if self.requests.is_at(id, stamp) => self.ask(id),
            Event::Deadline { id, attempt } if self.requests.get(id).attempt == attempt => {
                self.deadline(id)
            }
            Event::Observe => self.observe(),
            Event::Scrape => {
                self.scrape();
                Ok(())
            }
            Event::Probe => {
                self.probe();
                Ok(())
            }
            Event::Fault { index } => self.fault(usize::from(index)),
            // Planned for a state that its request has left.
            _ => Ok(()),
        }
    }

    /// Does what follows, until nothing does.
    fn settle(&mut self) -> Result<(), Broken> {
        while let Some(todo) = self.todo.pop_front() {
            match todo {
                Todo::PassOn(worker) => self.pass_on(worker)?,
                Todo::Work(worker) => self.work(worker),
                Todo::Offer(id) => self.offer(id)?,
                Todo::Displaced(id) => self.displaced(id)?,
            }
        }
        Ok(())
    }

    fn observe(&mut self) -> Result<(), Broken> {
        self.advice.observe(self.now, &self.trackers.gateway);
        for (advice, share) in self.advice_of_tenants.iter_mut().zip(&self.trackers.tenants) {
            if let Some(share) = share {
                advice.observe(self.now, share);
            }
        }
        self.fleet.tick(self.now);
        self.plan_again(OBSERVE_EVERY, Event::Observe);
        self.check_sums()
    }

    fn scrape(&mut self) {
        if !self.fleet.needs_reports() {
            return;
        }
        for (number, worker) in self.workers.iter().enumerate() {
            if let Some(report) = worker.report() {
                self.fleet.hear(number, report, self.now);
            }
        }
        self.plan_again(SCRAPE_EVERY, Event::Scrape);
    }

    fn probe(&mut self) {
        for (number, worker) in self.workers.iter().enumerate() {
            self.fleet.set_up(number, !worker.trouble.dead);
        }
        self.plan_again(PROBE_EVERY, Event::Probe);
    }

    /// Goes on as long as anything is to come, and for a quiet time after.
    fn plan_again(&mut self, every: Time, event: Event) {
        if self.requests.len() > 0 {
            self.end = self.end.max(self.now);
        }
        if self.now + every <= self.end + QUIET {
            self.agenda.plan(self.now + every, event);
        }
    }

    /// Whether nobody comes back any more. Who came back after the load has ended would be served because it has
    /// ended, and a drill would have to wait for it.
    pub(super) fn is_over(&self, at: Time) -> bool {
        at >= nanos(self.scenario.duration_s)
    }

    /// The gateway's own processor does one thing after the other. When it is done with this one.
    pub(super) fn process(&mut self, cost: Time) -> Time {
        self.idle_at = self.idle_at.max(self.now) + cost;
        self.idle_at
    }

    pub(super) fn at(&self) -> Duration {
        Duration::from_nanos(self.now)
    }

    pub(super) fn class(&self, id: u32) -> &ClassNow {
        &self.classes[usize::from(self.requests.get(id).class)]
    }

    pub(super) fn set_state(&mut self, id: u32, state: State) -> u32 {
        let request = self.requests.get_mut(id);
        self.checks.moved(request.state, state);
        request.state = state;
        request.stamp = request.stamp.wrapping_add(1);
        request.stamp
    }
}

pub(super) fn nanos(seconds: f64) -> Time {
    Duration::from_secs_f64(seconds).as_nanos() as Time
}
