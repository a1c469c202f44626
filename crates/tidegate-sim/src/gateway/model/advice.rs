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

    /// Returns the wait that one refused client is told, in whole milliseconds.
    pub fn for_one(&self, refusal: Refusal) -> Duration {
        let wait = self.wait[refusal.priority.index()][refusal.reason.index()];
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
    use crate::gateway::model::Trackers;
    use crate::gateway::simulation::Simulation;
    use crate::scenario::{Scenario, What};

    /// A limit of 20 for 200 requests a second, in phases of so many seconds and this load, with one return.
    fn scenario(phases: &[(u32, f64)]) -> Scenario {
        let duration_s: u32 = phases.iter().map(|(seconds, _)| seconds).sum();
        let mut text = format!(
            r#"
            about = "A limit of 20."
            duration_s = {duration_s}
            upstreams = {{ count = 1, slots = 1000, queue = 1 }}
            gateway = {{ limits = {{ global = 1000, high = 500, normal = 300, low = 20 }} }}
            [[class]]
            name = "low"
            priority = "low"
            per_s = 200
            service = {{ kind = "exponential", ms = 100 }}
            retry = {{ times = 1, wait = "told" }}
            "#
        );
        for (index, (seconds, load)) in phases.iter().enumerate() {
            text += &format!("[[phase]]\nname = \"{index}\"\npart = {seconds}\nload = {load}\n");
        }
        Scenario::read("advice", &text).expect("it is valid")
    }

    /// Runs it, and returns the chance of a client that came back, how many did, and the advice at the end.
    fn run(scenario: &Scenario, spread: bool) -> (f64, f64, Duration) {
        let upstreams = scenario.upstreams.expect("it has upstreams");
        let settings = Settings { spread, ..Settings::of(scenario, &upstreams) };
        let trackers = Trackers::new(&settings);
        let mut simulation = Simulation::new(scenario, &upstreams, settings, &trackers, 1, None);
        let arrivals = Arrivals::new(scenario, 1);
        let offered = Arrivals::new(scenario, 1).count() as f64;
        simulation.run(arrivals).expect("no invariant breaks");
        let low = MessagePriority::Low.index();
        let advice = simulation.advice.wait[low][Reason::PriorityLimit.index()];
        let refused_attempts = trackers.gateway.stats().low_shed as f64;
        let findings = simulation.into_findings();
        let refused = findings.value(What::RefusedShare, "low", None).unwrap_or(0.0) * offered;
        let returned = refused_attempts - refused;
        (1.0 - refused / returned, returned, advice)
    }

    /// When the advice falls, clients with an earlier longer wait and a later shorter wait return together.
    #[test]
    fn the_same_advice_for_all_brings_them_back_in_herds() {
        let overload = scenario(&[(200, 3.0)]);
        let (spread, returned, _) = run(&overload, true);
        let (same, _, _) = run(&overload, false);
        // Five standard errors.
        let tolerance = 5.0 * (spread * (1.0 - spread) / returned).sqrt();
        assert!(same < spread - tolerance, "{same} is not less than {spread} - {tolerance}");
    }

    #[test]
    fn advice_falls_to_the_minimum_when_the_load_falls_below_capacity() {
        // The last refused clients are back after 1.5 × 4.4 s; 890 refusals a second are then forgotten to less
        // than one within 2 s · ln 890 = 14 s. The run goes on for 6 s without load: of 100 completions a second
        // the advisor then remembers e^−3, five a second, and 200 ms until one of them. In the overload it was 4.4
        // s.
        let (_, _, advice) = run(&scenario(&[(60, 3.0), (30, 0.5)]), true);
        assert!(advice <= Duration::from_millis(200), "{advice:?}");
    }
}
