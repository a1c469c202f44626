use super::managers::Managers;
use super::seed_loop::SeedLoop;
use super::setup::Setup;
use super::{ExecutorsReport, Policy};
use std::time::Duration;

/// Tasks for executors of one slot each.
#[derive(Clone, Debug, PartialEq)]
pub struct ExecutorsScenario {
    /// Who places them.
    pub policy: Policy,
    /// How many executors. The seed has as many workers.
    pub executors: u32,
    /// How many managers share them, each with its share of the tasks.
    pub managers: u32,
    /// What is asked of them, as a share of what they could do if nothing took time but tasks.
    pub load: f64,
    /// How many tasks arrive.
    pub tasks: u64,
    /// How long a task takes on average.
    pub task_time: Duration,
    /// How much that varies.
    pub spread: TaskTime,
    /// How long a message takes, one way.
    pub hop: Duration,
    /// What comes on top of the load.
    pub burst: Option<Burst>,
    /// Where all chance comes from.
    pub seed: u64,
}

/// How the times of tasks are distributed.
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
    /// When.
    pub at: Duration,
    /// How long all executors together would work on it.
    pub work: Duration,
}

/// Runs a scenario until the last task has arrived, or with a burst until nobody waits any more.
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

    /// How long the work of a burst takes beside the load, if nothing takes time but tasks.
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
