use super::settings::Settings;
use crate::agenda::Time;
use std::time::Duration;
use tidegate_core::admission::{
    InFlightTracker, MessagePriority, Reason, Refusal, RetryAdvisor, RetryBoard,
};

/// Retry advice of an admission limit, by priority and reason: its pace is computed a few times a second, and each
/// refused client gets a turn.
#[derive(Debug)]
pub struct Advice {
    advisor: RetryAdvisor,
    board: RetryBoard,
    /// The next wait by priority and reason, as of the last observation.
    wait: [[Duration; 2]; 4],
    /// False: all clients between two observations are told the same.
    turns: bool,
}

// === impl Advice ===

impl Advice {
    pub fn new(settings: &Settings) -> Self {
        let (advisor, board) = (RetryAdvisor::new(), RetryBoard::new(settings.retry));
        let wait = [[settings.retry.min; 2]; 4];
        Self { advisor, board, wait, turns: settings.turns }
    }

    pub fn observe(&mut self, now: Time, tracker: &InFlightTracker) {
        let now = Duration::from_nanos(now);
        self.advisor.observe(now, &tracker.stats());
        self.board.publish(&self.advisor);
        for priority in MessagePriority::ALL {
            for reason in Reason::ALL {
                let wait = self.board.peek(Refusal { priority, reason }, now);
                self.wait[priority.index()][reason.index()] = told(wait);
            }
        }
    }

    /// Returns the wait of the next refused client as of the last observation, in whole milliseconds.
    pub fn for_all(&self, refusal: Refusal) -> Duration {
        self.wait[refusal.priority.index()][refusal.reason.index()]
    }

    /// Returns the wait that one refused client is told, in whole milliseconds.
    pub fn for_one(&self, refusal: Refusal, now: Time) -> Duration {
        let own = self.board.take(refusal, Duration::from_nanos(now));
        if self.turns { told(own) } else { self.for_all(refusal) }
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
    fn run(scenario: &Scenario, turns: bool) -> PriorityAdmission {
        let upstreams = scenario.upstreams.expect("it has upstreams");
        let settings = Settings { turns, ..Settings::of(scenario, &upstreams) };
        let trackers = Trackers::new(&settings);
        let mut simulation = Simulation::new(scenario, &upstreams, settings, &trackers, 1, None);
        simulation.run(Arrivals::new(scenario, 1)).expect("no invariant breaks");
        simulation.admission.of(MessagePriority::Low).clone()
    }

    /// When the advice falls, clients with an earlier longer wait and a later shorter wait return together.
    #[test]
    fn the_same_advice_for_all_brings_them_back_in_herds() {
        let overload = scenario();
        let (turns, same) = (run(&overload, true), run(&overload, false));
        let (share, same_share) = (turns.first_return_share(), same.first_return_share());
        // Five standard errors.
        let tolerance = 5.0 * (share * (1.0 - share) / turns.returned as f64).sqrt();
        assert!(
            same_share < share - tolerance,
            "{same_share} is not less than {share} - {tolerance}"
        );
    }
}
