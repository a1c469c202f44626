//! Clients: they wait for a response, retry, or give up.

use super::event::Event;
use super::model::{Broken, State};
use super::simulation::{ClassNow, Simulation};
use crate::agenda::Time;
use crate::measure::{Attempt, Ended, How};
use crate::scenario::{Class, Scenario};
use std::time::Duration;
use tidegate_core::rng::Rng;
use tidegate_core::routing::ChargeRule;

// === impl ClassNow ===

impl ClassNow {
    pub(super) fn all(scenario: &Scenario, seeds: &mut Rng) -> Vec<Self> {
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
            rng: seeds.fork(),
        };
        scenario.classes.iter().map(of).collect()
    }
}

// === impl Simulation ===

impl Simulation<'_> {
    /// Ends an attempt with a refusal, and retry advice if there is any.
    pub(super) fn refused(
        &mut self,
        id: u32,
        reason: &'static str,
        told: Option<Duration>,
    ) -> Result<(), Broken> {
        if let Some(wait) = told {
            self.checks.told(wait)?;
            let priority = self.class(id).priority;
            self.admission.of_mut(priority).record_advice(wait);
        }
        self.process(self.settings.refusal_cost);
        let class = self.requests.get(id).class;
        self.recorder.attempt(self.at(), class, Attempt::Refused(reason));
        self.let_go(id);
        let plan = self.scenario.classes[usize::from(class)].retry;
        let wait = plan.and_then(|plan| {
            let uniform = self.classes[usize::from(class)].rng.uniform();
            plan.wait(self.requests.get(id).returns + 1, told, uniform)
        });
        self.come_back(id, wait, How::Refused);
        Ok(())
    }

    /// Ends an attempt with a failure or at its deadline.
    pub(super) fn failed(&mut self, id: u32) {
        self.let_go(id);
        let class = usize::from(self.requests.get(id).class);
        let plan = self.scenario.classes[class].retry.filter(|plan| plan.failures);
        let wait = plan.and_then(|plan| {
            let uniform = self.classes[class].rng.uniform();
            plan.wait(self.requests.get(id).returns + 1, None, uniform)
        });
        self.come_back(id, wait, How::Failed);
    }

    /// Ends a request with a good response in time.
    pub(super) fn good(&mut self, id: u32, upstream: Option<u16>) {
        self.let_go(id);
        self.over(id, How::Good, upstream);
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
                let priority = self.class(id).priority;
                self.admission.of_mut(priority).record_last_attempt(at.is_some());
                let upstream = (how == How::Failed).then(|| self.requests.get(id).upstream);
                self.over(id, how, upstream);
            }
        }
    }

    fn over(&mut self, id: u32, how: How, upstream: Option<u16>) {
        let request = self.requests.get(id);
        let ended = Ended {
            due: Duration::from_nanos(request.due),
            at: self.at(),
            class: request.class,
            upstream,
            how,
        };
        let state = request.state;
        self.recorder.ended(&ended);
        self.checks.ended(state);
        self.requests.remove(id);
    }
}
