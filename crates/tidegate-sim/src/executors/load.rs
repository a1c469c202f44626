use super::{ExecutorsScenario, TaskTime};
use crate::agenda::Time;
use crate::arrivals::TaskArrivals;
use crate::random::Draw;
use tidegate_core::rng::Rng;

/// The arrival times and durations of tasks: from streams of their own, so that they are the same for every
/// placement.
#[derive(Debug)]
pub(super) struct TaskLoad {
    arrivals: Source,
    times: Rng,
    time_mean_ns: f64,
    spread: TaskTime,
}

#[derive(Debug)]
enum Source {
    /// A number of tasks at one rate.
    Steady { rng: Rng, gap_mean_ns: f64, at_ns: f64, left: u64 },
    /// The arrivals of a scenario file.
    Shaped(Box<TaskArrivals>),
}

// === impl TaskLoad ===

impl TaskLoad {
    pub(super) fn new(scenario: &ExecutorsScenario, rng: &mut Rng) -> Self {
        let arrivals = Source::Steady {
            rng: rng.fork(),
            gap_mean_ns: 1e9 / scenario.tasks_per_s(),
            at_ns: 0.0,
            left: scenario.tasks,
        };
        Self {
            arrivals,
            times: rng.fork(),
            time_mean_ns: scenario.task_time.as_nanos() as f64,
            spread: scenario.spread,
        }
    }

    /// Creates the load of a scenario file, with tasks of one duration.
    pub(super) fn shaped(arrivals: TaskArrivals, task_ms: f64) -> Self {
        Self {
            arrivals: Source::Shaped(Box::new(arrivals)),
            times: Rng::new(0),
            time_mean_ns: task_ms * 1e6,
            spread: TaskTime::Fixed,
        }
    }

    /// Returns the arrival time of the next task.
    pub(super) fn next_arrival(&mut self) -> Option<Time> {
        match &mut self.arrivals {
            Source::Steady { rng, gap_mean_ns, at_ns, left } => {
                *left = left.checked_sub(1)?;
                *at_ns += rng.exponential(*gap_mean_ns);
                Some(*at_ns as Time)
            }
            Source::Shaped(arrivals) => arrivals.next().map(|at| at.as_nanos() as Time),
        }
    }

    /// Returns the duration of the next task.
    pub(super) fn task_time(&mut self) -> Time {
        match self.spread {
            TaskTime::Fixed => self.time_mean_ns as Time,
            TaskTime::Exponential => self.times.exponential(self.time_mean_ns) as Time,
        }
    }
}
