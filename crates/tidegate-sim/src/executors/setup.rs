use super::load::TaskLoad;
use super::measure::Measure;
use super::{ExecutorFlaw, ExecutorsScenario};
use crate::agenda::Time;
use crate::arrivals::TaskArrivals;
use crate::scenario::{ExecutorsWorld, Fault, Scenario};
use std::time::Duration;
use tidegate_core::capacity::ExecutorSlots;
use tidegate_core::rng::Rng;

/// The lease without faults: it never expires.
const LEASE_UNTROUBLED: Duration = Duration::from_secs(86_400);
/// The ended executions that an executor remembers without faults: each is asked about once and at once.
const PAST_UNTROUBLED: usize = 8;
/// The managers' default lease.
const LEASE: Duration = Duration::from_secs(15);
/// The approximate number of points of a line in a chart.
const SAMPLES: f64 = 240.0;

/// The setup of a run, except for the placement.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) executors: u32,
    pub(super) managers: u32,
    pub(super) hop: Time,
    pub(super) lease: Duration,
    /// The number of ended executions that an executor remembers.
    pub(super) past_max: usize,
    pub(super) faults: Vec<Fault>,
    pub(super) flaw: Option<ExecutorFlaw>,
    pub(super) load: TaskLoad,
    pub(super) rng: Rng,
    /// The generator of network faults.
    pub(super) network_rng: Rng,
    pub(super) measure: Measure,
    /// The end of the load; tasks under way then are still waited for.
    pub(super) horizon: Option<Time>,
    pub(super) sample_every: Time,
}

// === impl Setup ===

impl Setup {
    /// Creates a setup without faults, which ends at the last arrival.
    pub(super) fn untroubled(scenario: &ExecutorsScenario) -> Self {
        let mut rng = Rng::new(scenario.seed);
        let load = TaskLoad::new(scenario, &mut rng);
        Self {
            executors: scenario.executors,
            managers: scenario.managers.max(1),
            hop: nanos(scenario.hop),
            lease: LEASE_UNTROUBLED,
            past_max: PAST_UNTROUBLED,
            faults: Vec::new(),
            flaw: None,
            load,
            rng,
            network_rng: Rng::new(0),
            measure: Measure::default(),
            horizon: None,
            sample_every: Time::MAX,
        }
    }

    /// Creates the setup of a scenario file.
    pub(super) fn of(
        scenario: &Scenario,
        world: &ExecutorsWorld,
        seed: u64,
        flaw: Option<ExecutorFlaw>,
    ) -> Self {
        let arrivals = TaskArrivals::new(scenario, seed);
        let mut rng = Rng::new(seed);
        let troubled = !scenario.faults.is_empty();
        let horizon = (scenario.duration_s * 1e9) as Time;
        Self {
            executors: world.executors,
            managers: world.managers,
            hop: (world.hop_ms * 1e6) as Time,
            lease: if troubled { LEASE } else { LEASE_UNTROUBLED },
            past_max: if troubled { ExecutorSlots::PAST_MAX } else { PAST_UNTROUBLED },
            faults: scenario.faults.clone(),
            flaw,
            load: TaskLoad::shaped(arrivals, world.task_ms),
            network_rng: rng.fork(),
            rng,
            measure: Measure::judging(scenario),
            horizon: Some(horizon),
            sample_every: ((scenario.duration_s / SAMPLES).max(0.1) * 1e9) as Time,
        }
    }
}

pub(super) fn nanos(duration: Duration) -> Time {
    Time::try_from(duration.as_nanos()).unwrap_or(Time::MAX)
}
