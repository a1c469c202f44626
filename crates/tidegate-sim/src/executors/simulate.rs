use super::dispatch::Managers;
use super::findings::{PhaseCounts, PlacementRun, Sample, TaskRun, findings};
use super::measure::{Measure, Task};
use super::seed_loop::SeedLoop;
use super::setup::Setup;
use super::{ExecutorFlaw, Policy};
use crate::Violation;
use crate::agenda::Time;
use crate::report::Findings;
use crate::scenario::{FaultKind, Scenario};

/// Runs a scenario of executors in virtual time: each of its placements brings all of its tasks, alone.
///
/// After the load it goes on until every task is over, so that what is lost is known.
///
/// # Errors
///
/// The first thing that must never be, and was.
pub fn simulate(scenario: &Scenario, seed: u64) -> Result<Findings, Violation> {
    simulate_flawed(scenario, seed, None)
}

/// Runs a scenario with a planted flaw, to test the invariants.
///
/// # Errors
///
/// The first thing that must never be, and was.
pub fn simulate_flawed(
    scenario: &Scenario,
    seed: u64,
    flaw: Option<ExecutorFlaw>,
) -> Result<Findings, Violation> {
    let Some(world) = &scenario.executors else { return Ok(Findings::default()) };
    let mut runs = Vec::new();
    for policy in &world.placements {
        let setup = Setup::of(scenario, world, seed, flaw);
        let measure = match policy {
            Policy::Ours(placement) => Managers::new(setup, *placement).play()?,
            Policy::Seed => SeedLoop::new(setup).play(),
        };
        runs.push(PlacementRun::measured(*policy, &measure));
    }
    let mut found = findings(scenario, &runs);
    let seed_is_there = world.placements.contains(&Policy::Seed);
    if seed_is_there && scenario.faults.iter().any(|fault| fault.kind == FaultKind::ManagerDead) {
        found.notes.push(
            "The seed's loop has no managers: its workers of the same numbers are killed instead."
                .to_owned(),
        );
    }
    Ok(found)
}

// === impl PlacementRun ===

impl PlacementRun {
    fn measured(policy: Policy, measure: &Measure) -> Self {
        let task = |task: &Task| TaskRun {
            due_s: seconds(task.arrived),
            started_s: task.started.map(seconds),
        };
        let sample = |(at, waiting, running): &(Time, u64, u64)| Sample {
            at_s: seconds(*at),
            waiting: *waiting,
            running: *running,
        };
        let counts = measure
            .windows
            .iter()
            .map(|window| PhaseCounts { messages: Some(window.messages), wasted: window.wasted });
        Self {
            policy,
            tasks: measure.tasks.iter().map(task).collect(),
            ran_s: measure.runs.iter().map(|(a, b)| (seconds(*a), seconds(*b))).collect(),
            counts: counts.collect(),
            lost: measure.lost,
            twice: measure.twice,
            samples: measure.samples.iter().map(sample).collect(),
            decisions: measure.decisions,
        }
    }
}

fn seconds(time: Time) -> f64 {
    time as f64 / 1e9
}
