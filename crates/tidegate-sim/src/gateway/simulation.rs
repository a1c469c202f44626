use super::Flaw;
use super::event::Event;
use super::model::{
    AdmissionSummary, Advice, Broken, Checks, Fleet, Settings, Slab, State, Trackers, Upstream,
    Waiting,
};
use crate::agenda::{Agenda, Time};
use crate::arrivals::{Arrival, Arrivals};
use crate::measure::Recorder;
use crate::report::Findings;
use crate::scenario::{Scenario, Upstreams};
use crate::violation::Violation;
use std::collections::VecDeque;
use std::time::Duration;
use tidegate_core::admission::{MessagePriority, Reason, Refusal};
use tidegate_core::retry::{BudgetLimits, RetryBudget};
use tidegate_core::rng::Rng;

/// The server's intervals of observation, load scrapes and probes, in nanoseconds.
const OBSERVE_EVERY: Time = 100_000_000;
const SCRAPE_EVERY: Time = 250_000_000;
const PROBE_EVERY: Time = 1_000_000_000;

/// The quiet time after which a limit that is still tight counts as latched: reports expire after 5 s.
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
    simulate_with_admission(scenario, seed, plant).map(|(findings, _)| findings)
}

/// Runs a scenario like [`simulate`], and returns the summary of its admission too: retry advice and returning
/// clients, which no report shows.
///
/// # Errors
///
/// Those of [`simulate`].
pub fn simulate_with_admission(
    scenario: &Scenario,
    seed: u64,
    plant: Option<Flaw>,
) -> Result<(Findings, AdmissionSummary), Violation> {
    let Some(upstreams) = &scenario.upstreams else { return Ok(Default::default()) };
    let settings = Settings::of(scenario, upstreams);
    let trackers = Trackers::new(&settings);
    let mut simulation = Simulation::new(scenario, upstreams, settings, &trackers, seed, plant);
    match simulation.run(Arrivals::new(scenario, seed)) {
        Ok(()) => {
            let admission = std::mem::take(&mut simulation.admission);
            Ok((simulation.into_findings(), admission))
        }
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
    pub(super) fleet: Fleet<'a>,
    pub(super) waiting: Waiting,
    pub(super) upstreams: Vec<Upstream>,
    pub(super) requests: Slab<'a>,
    pub(super) classes: Vec<ClassNow>,
    pub(super) agenda: Agenda<Event>,
    pub(super) todo: VecDeque<Todo>,
    pub(super) rng: Rng,
    pub(super) recorder: Recorder,
    pub(super) admission: AdmissionSummary,
    pub(super) checks: Checks,
    pub(super) now: Time,
    pub(super) end: Time,
    pub(super) decisions: u64,
    pub(super) events: u64,
    /// The time at which the gateway's processor has finished all work so far.
    pub(super) idle_at: Time,
    /// The time of the last admission, for the flaw of a raced limit.
    pub(super) let_in_at: Option<Time>,
    /// Requests that are over, for the flaw of a leaked permit.
    pub(super) over: u64,
}

/// Properties that all requests of a class share.
#[derive(Clone, Debug)]
pub(super) struct ClassNow {
    pub(super) priority: MessagePriority,
    pub(super) tenant: Option<usize>,
    pub(super) charge: tidegate_core::routing::Charge,
    /// True if it can be sent twice: it has no body, so it is a GET.
    pub(super) idempotent: bool,
    pub(super) deadline: Option<Time>,
    pub(super) rng: Rng,
}

/// A consequence of the current event, handled at once.
#[derive(Clone, Copy, Debug)]
pub(super) enum Todo {
    /// A slot for the queue of the pool may be free.
    Serve,
    /// The upstream has a free slot for its own queue.
    Work(usize),
    /// This request is to be offered to an upstream.
    Offer(u32),
}

// === impl Simulation ===

impl<'a> Simulation<'a> {
    pub(super) fn new(
        scenario: &'a Scenario,
        upstreams: &Upstreams,
        settings: Settings,
        trackers: &'a Trackers,
        seed: u64,
        plant: Option<Flaw>,
    ) -> Self {
        // Not the stream that arrivals are drawn from.
        let mut seeds = Rng::new(!seed);
        let mut agenda = Agenda::default();
        for event in [Event::Observe, Event::Scrape, Event::Probe] {
            agenda.plan(0, event);
        }
        for (index, fault) in (0..).zip(&scenario.faults) {
            agenda.plan(nanos(fault.from_s), Event::Fault { index });
            agenda.plan(nanos(fault.until_s), Event::Fault { index });
        }
        Self {
            advice: Advice::new(&settings),
            advice_of_tenants: trackers.tenants.iter().map(|_| Advice::new(&settings)).collect(),
            budget: RetryBudget::new(BudgetLimits::default()),
            fleet: Fleet::new(&settings, trackers, plant),
            waiting: Waiting::new(&settings, plant),
            upstreams: (0..upstreams.count)
                .map(|_| Upstream::new(upstreams, seeds.fork()))
                .collect(),
            requests: Slab::default(),
            classes: ClassNow::all(scenario, &mut seeds),
            agenda,
            todo: VecDeque::new(),
            rng: seeds.fork(),
            recorder: Recorder::new(scenario),
            admission: AdmissionSummary::default(),
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

    pub(super) fn run(&mut self, mut arrivals: Arrivals) -> Result<(), Broken> {
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
            self.waiting.check()?;
            self.waiting.check_idle(&self.fleet, self.now)?;
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
                Todo::Serve => self.serve()?,
                Todo::Work(upstream) => self.work(upstream),
                Todo::Offer(id) => self.offer(id)?,
            }
        }
        Ok(())
    }

    fn observe(&mut self) -> Result<(), Broken> {
        self.advice.observe(self.now, &self.trackers.gateway);
        self.note_advice();
        for (advice, share) in self.advice_of_tenants.iter_mut().zip(&self.trackers.tenants) {
            if let Some(share) = share {
                advice.observe(self.now, share);
            }
        }
        self.fleet.tick(!self.waiting.is_empty(), self.now);
        self.todo.push_back(Todo::Serve);
        self.plan_again(OBSERVE_EVERY, Event::Observe);
        self.check_sums()
    }

    /// Notes the retry advice until the load ends. In the quiet time after it, completions are forgotten and the
    /// advice rises again, with nobody to read it.
    fn note_advice(&mut self) {
        if self.now > nanos(self.scenario.duration_s) {
            return;
        }
        for priority in MessagePriority::ALL {
            let own_limit = Refusal { priority, reason: Reason::PriorityLimit };
            self.admission.of_mut(priority).advice_at_end = self.advice.for_all(own_limit);
        }
    }

    fn scrape(&mut self) {
        if !self.fleet.needs_reports() {
            return;
        }
        for (number, upstream) in self.upstreams.iter().enumerate() {
            if let Some(report) = upstream.report() {
                self.fleet.record_report(number, report, self.now);
            }
        }
        self.todo.push_back(Todo::Serve);
        self.plan_again(SCRAPE_EVERY, Event::Scrape);
    }

    fn probe(&mut self) {
        for (number, upstream) in self.upstreams.iter().enumerate() {
            self.fleet.set_up(number, !upstream.trouble.dead, self.now);
        }
        self.todo.push_back(Todo::Serve);
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

    /// Returns `true` if clients retry no more at this time. A retry after the end of the load would be served
    /// only because the load has ended, and a drill would have to wait for it.
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
