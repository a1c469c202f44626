use super::dispatch::Managers;
use super::seed_loop::SeedLoop;
use super::setup::Setup;
use super::{ExecutorsReport, Policy};
use std::time::Duration;

/// Tasks for executors of one slot each.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutorsScenario {
    /// The placement policy.
    pub policy: Policy,
    /// Number of executors. The seed's loop has as many workers.
    pub executors: u32,
    /// Number of managers that share them, each with its share of the tasks.
    pub managers: u32,
    /// The load as a share of capacity, if only tasks took time.
    pub load: f64,
    /// Number of tasks.
    pub tasks: u64,
    /// The mean duration of a task.
    pub task_time: Duration,
    /// The distribution of the duration.
    pub spread: TaskTime,
    /// The one-way delay of a message.
    pub hop: Duration,
    /// A burst on top of the load.
    pub burst: Option<Burst>,
    /// The seed of all random numbers.
    pub seed: u64,
}

/// The distribution of task durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskTime {
    /// All the same.
    Fixed,
    /// Exponentially.
    Exponential,
}

/// Tasks that all come at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// The time.
    pub at: Duration,
    /// The time in which all executors together would finish it.
    pub work: Duration,
}

/// Runs a scenario until the last task has arrived, or with a burst until the queue is empty.
#[must_use]
pub fn run(scenario: &ExecutorsScenario) -> ExecutorsReport {
    match scenario.policy {
        Policy::Ours(placement) => {
            Managers::new(Setup::untroubled(scenario), placement).run(scenario)
        }
        Policy::Seed => SeedLoop::new(Setup::untroubled(scenario)).run(scenario),
    }
}

// === impl ExecutorsScenario ===

impl ExecutorsScenario {
    /// Tasks of 50 ms that arrive at random, and a round trip of 1 ms.
    #[must_use]
    pub fn steady(policy: Policy, executors: u32, load: f64, seed: u64) -> Self {
        Self {
            policy,
            executors,
            managers: 1,
            load,
            tasks: 20_000,
            task_time: Duration::from_millis(50),
            spread: TaskTime::Fixed,
            hop: Duration::from_micros(500),
            burst: None,
            seed,
        }
    }

    /// Returns the time in which a burst is worked off beside the load, if only tasks took time.
    #[must_use]
    pub fn recovery_in_theory(&self) -> Option<Duration> {
        let burst = self.burst?;
        Duration::try_from_secs_f64(burst.work.as_secs_f64() / (1.0 - self.load)).ok()
    }

    /// Tasks that arrive a second.
    pub(super) fn tasks_per_s(&self) -> f64 {
        self.load * f64::from(self.executors) / self.task_time.as_secs_f64()
    }

    /// Tasks that come at once with the burst.
    pub(super) fn burst_tasks(&self) -> u64 {
        let work_s = self.burst.map_or(0.0, |burst| burst.work.as_secs_f64());
        (work_s * f64::from(self.executors) / self.task_time.as_secs_f64()).round() as u64
    }
}
