use super::gateway::{Gateway, Sent};
use super::server::{Effect, Server, nanos};
use super::{LimitFigures, LimitLaw, LimitScenario};
use crate::agenda::{Agenda, Time};
use crate::random::Draw;
use tidegate_core::limit::UpstreamOutcome;
use tidegate_core::rng::Rng;

/// Runs a scenario in virtual time with one law. The same seed gives the same figures.
#[must_use]
pub fn run(scenario: &LimitScenario, law: LimitLaw, seed: u64) -> LimitFigures {
    let mut simulation = Simulation::new(scenario, law, seed);
    simulation.run();
    LimitFigures::of(scenario, simulation.gateways.iter().map(|gateway| &gateway.tally))
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Arrival { gateway: usize, plan: u64 },
    Done(usize),
    NextDone(u64),
    Reply(usize, UpstreamOutcome),
    Timeout(usize),
    Tick(usize),
    Rate(usize),
    Change(usize),
}

struct Simulation<'a> {
    scenario: &'a LimitScenario,
    agenda: Agenda<Event>,
    rng: Rng,
    server: Server,
    gateways: Vec<Gateway>,
    sent: Vec<Sent>,
    now: Time,
}

/// Interval of the gateways' ticks.
const TICK: Time = 20_000_000;
/// Time until a refusal or a broken connection is known, apart from the network.
const REFUSAL_S: f64 = 0.0005;

// === impl Simulation ===

impl<'a> Simulation<'a> {
    fn new(scenario: &'a LimitScenario, law: LimitLaw, seed: u64) -> Self {
        let mut rng = Rng::new(seed.wrapping_mul(Rng::STEP));
        let server = Server::new(scenario, rng.fork());
        let gateways = (0..scenario.gateways.max(1)).map(|_| Gateway::new(law, scenario));
        Self {
            scenario,
            agenda: Agenda::default(),
            rng,
            server,
            gateways: gateways.collect(),
            sent: Vec::new(),
            now: 0,
        }
    }

    fn run(&mut self) {
        for gateway in 0..self.gateways.len() {
            self.agenda.plan(0, Event::Tick(gateway));
            self.plan_arrival(gateway);
        }
        for (i, (from_s, _)) in self.scenario.rates.iter().enumerate().skip(1) {
            self.agenda.plan(nanos(*from_s), Event::Rate(i));
        }
        for (i, (from_s, _)) in self.scenario.changes.iter().enumerate() {
            self.agenda.plan(nanos(*from_s), Event::Change(i));
        }
        let end = nanos(self.scenario.duration_s);
        while self.agenda.next_at().is_some_and(|at| at <= end) {
            let Some((at, event)) = self.agenda.next() else { break };
            self.now = at;
            self.handle(event);
        }
        self.gateways.iter_mut().for_each(|gateway| gateway.account_for_pause(end));
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrival { gateway, plan } => self.arrive(gateway, plan),
            Event::Done(request) => {
                if let Some(effects) = self.server.done(self.now, request, self.scenario) {
                    self.respond(request);
                    effects.into_iter().for_each(|effect| self.plan(effect));
                }
            }
            Event::NextDone(version) => {
                if let Some((request, next)) = self.server.next_done(self.now, version) {
                    next.into_iter().for_each(|effect| self.plan(effect));
                    self.respond(request);
                }
            }
            Event::Reply(request, outcome) => self.end(request, outcome),
            Event::Timeout(request) => self.end(request, UpstreamOutcome::TimedOut),
            Event::Tick(gateway) => {
                self.gateways[gateway].tick(self.now);
                self.pump(gateway);
                self.agenda.plan(self.now + TICK, Event::Tick(gateway));
            }
            Event::Rate(i) => {
                let rate_per_s = self.scenario.rates[i].1 / self.gateways.len() as f64;
                for gateway in 0..self.gateways.len() {
                    self.gateways[gateway].account_for_pause(self.now);
                    self.gateways[gateway].rate_per_s = rate_per_s;
                    self.plan_arrival(gateway);
                }
            }
            Event::Change(i) => {
                let change = self.scenario.changes[i].1;
                let effects = self.server.change(self.now, change, self.scenario);
                effects.into_iter().for_each(|effect| self.plan(effect));
            }
        }
    }

    fn plan_arrival(&mut self, gateway: usize) {
        let it = &mut self.gateways[gateway];
        it.arrivals += 1;
        if it.rate_per_s > 0.0 {
            let plan = it.arrivals;
            let wait_s = self.rng.exponential(1.0 / it.rate_per_s);
            self.agenda.plan(self.now + nanos(wait_s), Event::Arrival { gateway, plan });
        }
    }

    fn arrive(&mut self, gateway: usize, plan: u64) {
        if plan != self.gateways[gateway].arrivals {
            return;
        }
        self.gateways[gateway].arrive(self.now, self.scenario.burst, self.scenario);
        self.pump(gateway);
        if !self.gateways[gateway].pause(self.now, self.scenario) {
            self.plan_arrival(gateway);
        }
    }

    /// Sends what the limit allows.
    fn pump(&mut self, gateway: usize) {
        while let Some(sent) = self.gateways[gateway].send(self.now, gateway, self.scenario) {
            let request = self.sent.len();
            self.sent.push(sent);
            if let Some(patience_s) = self.scenario.patience_s {
                let leaves = Event::Reply(request, UpstreamOutcome::Abandoned);
                self.agenda.plan(sent.arrived + nanos(patience_s), leaves);
            }
            if let Some(timeout_s) = self.scenario.timeout_s {
                self.agenda.plan(self.now + nanos(timeout_s), Event::Timeout(request));
            }
            if let Some(effect) = self.server.submit(self.now, request, self.scenario) {
                self.plan(effect);
            }
        }
        if self.gateways[gateway].unpause(self.now, self.scenario) {
            self.plan_arrival(gateway);
        }
    }

    fn plan(&mut self, effect: Effect) {
        let refused = self.now + nanos(REFUSAL_S + self.server.network_s);
        let (at, event) = match effect {
            Effect::DoneAt(at, request) => (at, Event::Done(request)),
            Effect::NextAt(at, version) => (at, Event::NextDone(version)),
            Effect::Refused(request) => (refused, Event::Reply(request, UpstreamOutcome::Refused)),
            Effect::Broken(request) => {
                (refused, Event::Reply(request, UpstreamOutcome::ConnectFailed))
            }
        };
        self.agenda.plan(at, event);
    }

    fn respond(&mut self, request: usize) {
        if self.server.network_s > 0.0 {
            let at = self.now + nanos(self.server.network_s);
            self.agenda.plan(at, Event::Reply(request, UpstreamOutcome::Success));
        } else {
            self.end(request, UpstreamOutcome::Success);
        }
    }

    fn end(&mut self, request: usize, outcome: UpstreamOutcome) {
        let sent = &mut self.sent[request];
        let gateway = sent.gateway;
        if self.gateways[gateway].end(self.now, sent, outcome) {
            self.pump(gateway);
        }
    }
}
