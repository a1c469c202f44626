use super::{ExecutorsScenario, TaskTime};
use crate::agenda::Time;
use crate::arrivals::TaskArrivals;
use crate::random::SplitMix64;

/// When tasks arrive and how long they take: from streams of their own, so that it is the same for everyone who
/// places them.
#[derive(Debug)]
pub(super) struct TaskLoad {
    arrivals: Source,
    times: SplitMix64,
    time_mean_ns: f64,
    spread: TaskTime,
}

#[derive(Debug)]
enum Source {
    /// So many, at one rate.
    Steady { chance: SplitMix64, gap_mean_ns: f64, at_ns: f64, left: u64 },
    /// As a scenario's file says.
    Shaped(Box<TaskArrivals>),
}

// === impl TaskLoad ===

impl TaskLoad {
    pub(super) fn new(scenario: &ExecutorsScenario, chance: &mut SplitMix64) -> Self {
        let arrivals = Source::Steady {
            chance: chance.fork(),
            gap_mean_ns: 1e9 / scenario.tasks_per_s(),
            at_ns: 0.0,
            left: scenario.tasks,
        };
        Self {
            arrivals,
            times: chance.fork(),
            time_mean_ns: scenario.task_time.as_nanos() as f64,
            spread: scenario.spread,
        }
    }

    /// Tasks that all take as long.
    pub(super) fn shaped(arrivals: TaskArrivals, task_ms: f64) -> Self {
        Self {
            arrivals: Source::Shaped(Box::new(arrivals)),
            times: SplitMix64::new(0),
            time_mean_ns: task_ms * 1e6,
            spread: TaskTime::Fixed,
        }
    }

    /// When the next arrives.
    pub(super) fn next_arrival(&mut self) -> Option<Time> {
        match &mut self.arrivals {
            Source::Steady { chance, gap_mean_ns, at_ns, left } => {
                *left = left.checked_sub(1)?;
                *at_ns += chance.exponential(*gap_mean_ns);
                Some(*at_ns as Time)
            }
            Source::Shaped(arrivals) => arrivals.next().map(|at| at.as_nanos() as Time),
        }
    }

    /// How long the next takes.
    pub(super) fn task_time(&mut self) -> Time {
        match self.spread {
            TaskTime::Fixed => self.time_mean_ns as Time,
            TaskTime::Exponential => self.times.exponential(self.time_mean_ns) as Time,
        }
    }
}
