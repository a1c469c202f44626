use super::load::TaskLoad;
use super::measure::Measure;
use super::{ExecutorFlaw, ExecutorsScenario};
use crate::agenda::Time;
use crate::arrivals::TaskArrivals;
use crate::random::SplitMix64;
use crate::scenario::{ExecutorsWorld, Fault, Scenario};
use std::time::Duration;
use tidegate_core::capacity::ExecutorSlots;

/// Where nothing goes wrong no lease ever ends.
const LEASE_UNTROUBLED: Duration = Duration::from_secs(86_400);
/// How many executions an executor remembers there: each is asked about once and at once.
const PAST_UNTROUBLED: usize = 8;
/// By default, as managers have it.
const LEASE: Duration = Duration::from_secs(15);
/// Points of a line in a chart, about.
const SAMPLES: f64 = 240.0;

/// All that a run needs besides who places.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) executors: u32,
    pub(super) managers: u32,
    pub(super) hop: Time,
    pub(super) lease: Duration,
    /// How many executions an executor remembers that are over.
    pub(super) past_max: usize,
    pub(super) faults: Vec<Fault>,
    pub(super) flaw: Option<ExecutorFlaw>,
    pub(super) load: TaskLoad,
    pub(super) chance: SplitMix64,
    /// Of what messages go through.
    pub(super) wire_chance: SplitMix64,
    pub(super) measure: Measure,
    /// When the load is over; what is under way then is still waited for.
    pub(super) horizon: Option<Time>,
    pub(super) sample_every: Time,
}

// === impl Setup ===

impl Setup {
    /// Nothing goes wrong, and what happens after the last arrival does not matter.
    pub(super) fn untroubled(scenario: &ExecutorsScenario) -> Self {
        let mut chance = SplitMix64::new(scenario.seed);
        let load = TaskLoad::new(scenario, &mut chance);
        Self {
            executors: scenario.executors,
            managers: scenario.managers.max(1),
            hop: nanos(scenario.hop),
            lease: LEASE_UNTROUBLED,
            past_max: PAST_UNTROUBLED,
            faults: Vec::new(),
            flaw: None,
            load,
            chance,
            wire_chance: SplitMix64::new(0),
            measure: Measure::default(),
            horizon: None,
            sample_every: Time::MAX,
        }
    }

    /// As a scenario's file says.
    pub(super) fn of(
        scenario: &Scenario,
        world: &ExecutorsWorld,
        seed: u64,
        flaw: Option<ExecutorFlaw>,
    ) -> Self {
        let arrivals = TaskArrivals::new(scenario, seed);
        let mut chance = SplitMix64::new(seed);
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
            wire_chance: chance.fork(),
            chance,
            measure: Measure::judging(scenario),
            horizon: Some(horizon),
            sample_every: ((scenario.duration_s / SAMPLES).max(0.1) * 1e9) as Time,
        }
    }
}

pub(super) fn nanos(duration: Duration) -> Time {
    Time::try_from(duration.as_nanos()).unwrap_or(Time::MAX)
}
