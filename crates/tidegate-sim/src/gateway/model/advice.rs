use super::settings::Settings;
use crate::agenda::Time;
use std::time::Duration;
use tidegate_core::admission::{
    InFlightTracker, MessagePriority, Reason, Refusal, RetryAdvisor, RetryBounds, Spread,
};

/// Retry advice of an admission limit, by priority and reason: computed a few times a second, read on every
/// refusal.
#[derive(Debug)]
pub struct Advice {
    bounds: RetryBounds,
    advisor: RetryAdvisor,
    wait: [[Duration; 2]; 4],
    /// Spreads the advice over clients; `None`: all of them are told the same.
    spread: Option<Spread>,
}

// === impl Advice ===

impl Advice {
    pub fn new(settings: &Settings) -> Self {
        let bounds = settings.retry;
        let advisor = RetryAdvisor::new(bounds);
        let (wait, spread) = ([[bounds.min; 2]; 4], settings.spread.then(Spread::default));
        let mut advice = Self { bounds, advisor, wait, spread };
        advice.publish();
        advice
    }

    pub fn observe(&mut self, now: Time, tracker: &InFlightTracker) {
        self.advisor.observe(Duration::from_nanos(now), &tracker.stats());
        self.publish();
    }

    /// Returns the advice before it is spread over clients, in whole milliseconds.
    pub fn for_all(&self, refusal: Refusal) -> Duration {
        self.wait[refusal.priority.index()][refusal.reason.index()]
    }

    /// Returns the wait that one refused client is told, in whole milliseconds.
    pub fn for_one(&self, refusal: Refusal) -> Duration {
        let wait = self.for_all(refusal);
        match &self.spread {
            Some(spread) => told(self.bounds.spread(wait, spread.next())),
            None => told(wait),
        }
    }

    fn publish(&mut self) {
        for priority in MessagePriority::ALL {
            for reason in Reason::ALL {
                let wait = self.advisor.advise(Refusal { priority, reason });
                self.wait[priority.index()][reason.index()] = told(wait);
            }
        }
    }
}

/// Rounds a wait as responses do: to whole milliseconds.
pub fn told(wait: Duration) -> Duration {
    Duration::from_millis(wait.as_millis().max(1) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrivals::Arrivals;
    use crate::gateway::model::{PriorityAdmission, Trackers};
    use crate::gateway::simulation::Simulation;
    use crate::scenario::Scenario;

    /// A limit of 20 for 200 requests a second, at three times that, with one return.
    fn scenario() -> Scenario {
        let text = r#"
            about = "A limit of 20."
            duration_s = 200
            upstreams = { count = 1, slots = 1000, queue = 1 }
            gateway = { limits = { global = 1000, high = 500, normal = 300, low = 20 } }
            [[class]]
            name = "low"
            priority = "low"
            per_s = 600
            service = { kind = "exponential", ms = 100 }
            retry = { times = 1, wait = "told" }
        "#;
        Scenario::read("advice", text).expect("it is valid")
    }

    /// Runs it, and returns the admission of Low.
    fn run(scenario: &Scenario, spread: bool) -> PriorityAdmission {
        let upstreams = scenario.upstreams.expect("it has upstreams");
        let settings = Settings { spread, ..Settings::of(scenario, &upstreams) };
        let trackers = Trackers::new(&settings);
        let mut simulation = Simulation::new(scenario, &upstreams, settings, &trackers, 1, None);
        simulation.run(Arrivals::new(scenario, 1)).expect("no invariant breaks");
        simulation.admission.of(MessagePriority::Low).clone()
    }

    /// When the advice falls, clients with an earlier longer wait and a later shorter wait return together.
    #[test]
    fn the_same_advice_for_all_brings_them_back_in_herds() {
        let overload = scenario();
        let (spread, same) = (run(&overload, true), run(&overload, false));
        let (share, same_share) = (spread.first_return_share(), same.first_return_share());
        // Five standard errors.
        let tolerance = 5.0 * (share * (1.0 - share) / spread.returned as f64).sqrt();
        assert!(
            same_share < share - tolerance,
            "{same_share} is not less than {share} - {tolerance}"
        );
    }
}
