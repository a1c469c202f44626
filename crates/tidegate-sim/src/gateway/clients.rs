//! What those who ask do: they wait for an answer, come back, or give up.

use super::check::Broken;
use super::event::Event;
use super::request::State;
use super::simulation::{ClassNow, Simulation};
use crate::agenda::Time;
use crate::measure::{Attempt, Ended, How};
use crate::random::SplitMix64;
use crate::scenario::{Class, Scenario};
use std::time::Duration;
use tidegate_core::routing::ChargeRule;

// === impl ClassNow ===

impl ClassNow {
    pub(super) fn all(scenario: &Scenario, seeds: &mut SplitMix64) -> Vec<Self> {
        let tenants = scenario.gateway().tenants;
        let deadline = |ms: f64| Duration::from_secs_f64(ms / 1e3).as_nanos() as Time;
        let of = |class: &Class| Self {
            priority: class.priority,
            tenant: class
                .tenant
                .as_ref()
                .and_then(|name| tenants.iter().position(|tenant| tenant.name == *name)),
            charge: ChargeRule::default().of_bytes(Some(u64::from(class.body_bytes))),
            idempotent: class.body_bytes == 0,
            deadline: class.deadline_ms.map(deadline),
            chance: seeds.fork(),
        };
        scenario.classes.iter().map(of).collect()
    }
}

// === impl Simulation ===

impl Simulation<'_> {
    /// This attempt was refused, for this reason, with this advice if there was one.
    pub(super) fn refused(
        &mut self,
        id: u32,
        reason: &'static str,
        told: Option<Duration>,
    ) -> Result<(), Broken> {
        if let Some(wait) = told {
            self.checks.told(wait)?;
        }
        self.process(self.settings.refusal_cost);
        let class = self.requests.get(id).class;
        self.recorder.attempt(self.at(), class, Attempt::Refused(reason));
        self.let_go(id);
        let plan = self.scenario.classes[usize::from(class)].retry;
        let wait = plan.and_then(|plan| {
            let uniform = self.classes[usize::from(class)].chance.uniform();
            plan.wait(self.requests.get(id).returns + 1, told, uniform)
        });
        self.come_back(id, wait, How::Refused);
        Ok(())
    }

    /// This attempt failed, or its client waits no longer.
    pub(super) fn failed(&mut self, id: u32) {
        self.let_go(id);
        let class = usize::from(self.requests.get(id).class);
        let plan = self.scenario.classes[class].retry.filter(|plan| plan.failures);
        let wait = plan.and_then(|plan| {
            let uniform = self.classes[class].chance.uniform();
            plan.wait(self.requests.get(id).returns + 1, None, uniform)
        });
        self.come_back(id, wait, How::Failed);
    }

    /// The answer is good, and came in time.
    pub(super) fn good(&mut self, id: u32, worker: Option<u16>) {
        self.let_go(id);
        self.over(id, How::Good, worker);
    }

    fn come_back(&mut self, id: u32, wait: Option<Duration>, how: How) {
        let at = wait.map(|wait| self.now + wait.as_nanos() as Time);
        match at.filter(|at| !self.is_over(*at)) {
            Some(at) => {
                let stamp = self.set_state(id, State::Away);
                let request = self.requests.get_mut(id);
                request.returns += 1;
                request.attempt = request.attempt.wrapping_add(1);
                self.agenda.plan(at, Event::Return { id, stamp });
            }
            None => {
                let worker = (how == How::Failed).then(|| self.requests.get(id).worker);
                self.over(id, how, worker);
            }
        }
    }

    fn over(&mut self, id: u32, how: How, worker: Option<u16>) {
        let request = self.requests.get(id);
        let ended = Ended {
            due: Duration::from_nanos(request.due),
            at: self.at(),
            class: request.class,
            worker,
            how,
        };
        let state = request.state;
        self.recorder.ended(&ended);
        self.checks.ended(state);
        self.requests.remove(id);
    }
}
