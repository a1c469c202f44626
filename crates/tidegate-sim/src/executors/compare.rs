use super::{Burst, ExecutorsScenario, Policy, run};
use std::time::Duration;

/// What came of the same tasks under several placements. Its text is a table in Markdown.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacementComparison {
    /// One for each size and placement.
    pub rows: Vec<PlacementRow>,
}

/// What came of one placement.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacementRow {
    /// How many executors there are.
    pub executors: u32,
    /// What was asked of them, as a share of what they can do.
    pub load: f64,
    /// Who placed.
    pub policy: Policy,
    /// Refused submissions for each task.
    pub wasted: f64,
    /// Requests and replies for each task.
    pub messages: f64,
    /// The mean of the waits, in milliseconds.
    pub wait_mean_ms: f64,
    /// 99 % waited at most so long, in milliseconds.
    pub wait_p99_ms: f64,
    /// Of the tasks, the share that started.
    pub goodput: f64,
    /// Of the time of all slots, the share in which they worked when half as much again was asked as they can do.
    pub saturated: f64,
    /// How long a burst was felt, as a multiple of the theory; `None` when it was for ever.
    pub recovery: Option<f64>,
}

/// What is asked when more is asked than can be done.
const OVERLOAD: f64 = 1.5;
/// Before a burst, so that the line is as it always is.
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
