use crate::executors::{Burst, ExecutorsScenario, Policy, run};
use std::time::Duration;

/// A comparison of placements on the same tasks. Displays as a table in Markdown.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacementComparison {
    /// Executor for each size and placement.
    pub rows: Vec<PlacementRow>,
}

/// The results of one placement.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacementRow {
    /// Number of executors.
    pub executors: u32,
    /// The load as a share of capacity.
    pub load: f64,
    /// The placement policy.
    pub policy: Policy,
    /// Refused submissions for each task.
    pub wasted: f64,
    /// Requests and replies for each task.
    pub messages: f64,
    /// The mean of the waits, in milliseconds.
    pub wait_mean_ms: f64,
    /// 99 % waited at most so long, in milliseconds.
    pub wait_p99_ms: f64,
    /// The share of tasks that started.
    pub goodput: f64,
    /// The share of slot time in use at a load of 1.5.
    pub saturated: f64,
    /// The time to recover from a burst, as a multiple of the theory; `None` without a recovery.
    pub recovery: Option<f64>,
}

/// The load of an overload.
const OVERLOAD: f64 = 1.5;
/// The time of the burst: late enough for a queue in its steady state.
const BURST_AT: Duration = Duration::from_secs(2);
const BURST_WORK: Duration = Duration::from_secs(1);
const BURST_LOAD: f64 = 0.8;
/// Few executors are shared by few tasks: their bursts vary more, and more of them are looked at.
const BURST_EXECUTORS: u32 = 120;

/// Runs the same tasks under each of these placements, with each of these numbers of executors.
#[must_use]
pub fn compare(
    policies: &[Policy],
    executors: &[u32],
    load: f64,
    tasks: u64,
    seed: u64,
) -> PlacementComparison {
    let rows = executors.iter().flat_map(|executors| {
        policies.iter().map(|policy| {
            let steady = ExecutorsScenario::steady(*policy, *executors, load, seed);
            PlacementRow::new(&ExecutorsScenario { tasks, ..steady })
        })
    });
    PlacementComparison { rows: rows.collect() }
}

// === impl PlacementRow ===

impl PlacementRow {
    fn new(steady: &ExecutorsScenario) -> Self {
        let report = run(steady);
        let saturated = run(&ExecutorsScenario { load: OVERLOAD, ..steady.clone() });
        Self {
            executors: steady.executors,
            load: steady.load,
            policy: steady.policy,
            wasted: report.wasted_per_task(),
            messages: report.messages_per_task(),
            wait_mean_ms: report.wait_mean_ms,
            wait_p99_ms: report.wait_p99_ms,
            goodput: report.goodput(),
            saturated: saturated.used,
            recovery: recovery(steady),
        }
    }
}

/// The mean over some bursts of how long they were felt, as a multiple of the theory.
fn recovery(steady: &ExecutorsScenario) -> Option<f64> {
    let bursts = BURST_EXECUTORS.div_ceil(steady.executors.max(1));
    let mut sum = 0.0;
    for number in 0..bursts {
        let scenario = ExecutorsScenario {
            load: BURST_LOAD,
            tasks: u64::MAX,
            burst: Some(Burst { at: BURST_AT, work: BURST_WORK }),
            seed: steady.seed.wrapping_add(u64::from(number)),
            ..steady.clone()
        };
        let theory_s = scenario.recovery_in_theory()?.as_secs_f64();
        sum += run(&scenario).recovered?.as_secs_f64() / theory_s;
    }
    Some(sum / f64::from(bursts))
}
