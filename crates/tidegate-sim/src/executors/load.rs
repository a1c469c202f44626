use super::{ExecutorsScenario, TaskTime};
use crate::agenda::Time;
use crate::random::SplitMix64;

/// When tasks arrive and how long they take: from streams of their own, so that it is the same for everyone who
/// places them.
#[derive(Debug)]
pub(super) struct TaskLoad {
    arrivals: SplitMix64,
    times: SplitMix64,
    gap_mean_ns: f64,
    time_mean_ns: f64,
    spread: TaskTime,
    at_ns: f64,
    left: u64,
}

// === impl TaskLoad ===

impl TaskLoad {
    pub(super) fn new(scenario: &ExecutorsScenario, chance: &mut SplitMix64) -> Self {
        Self {
            arrivals: chance.fork(),
            times: chance.fork(),
            gap_mean_ns: 1e9 / scenario.tasks_per_s(),
            time_mean_ns: scenario.task_time.as_nanos() as f64,
            spread: scenario.spread,
            at_ns: 0.0,
            left: scenario.tasks,
        }
    }

    /// When the next arrives.
    pub(super) fn next_arrival(&mut self) -> Option<Time> {
        self.left = self.left.checked_sub(1)?;
        self.at_ns += self.arrivals.exponential(self.gap_mean_ns);
        Some(self.at_ns as Time)
    }

    /// How long the next takes.
    pub(super) fn task_time(&mut self) -> Time {
        match self.spread {
            TaskTime::Fixed => self.time_mean_ns as Time,
            TaskTime::Exponential => self.times.exponential(self.time_mean_ns) as Time,
        }
    }
}
