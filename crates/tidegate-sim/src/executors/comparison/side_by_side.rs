use crate::Violation;
use crate::executors::{Policy, simulate};
use crate::markdown::{self, number, percent};
use crate::scenario::{ExecutorsWorld, Scenario, What};
use std::fmt;

/// A comparison of placements in one scenario. Displays as a table in Markdown.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacementsInScenario {
    /// Executor for each placement.
    pub rows: Vec<PlacementFigures>,
    /// Notes that a reader needs.
    pub notes: Vec<String>,
}

/// The figures of one placement in a scenario; `None` where the scenario has no such figure.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacementFigures {
    /// The placement policy.
    pub policy: Policy,
    /// The share of due tasks that started.
    pub goodput: Option<f64>,
    /// The mean of the waits, in milliseconds.
    pub wait_mean_ms: Option<f64>,
    /// 99 % waited at most so long, in milliseconds.
    pub wait_p99_ms: Option<f64>,
    /// Refused submissions for each task.
    pub wasted: Option<f64>,
    /// Requests and replies for each task.
    pub messages: Option<f64>,
    /// The share of slot time in use.
    pub used: Option<f64>,
    /// Tasks that never ended.
    pub lost: Option<f64>,
    /// Tasks of which an attempt started twice.
    pub twice: Option<f64>,
}

const HEAD: [&str; 9] = [
    "placement",
    "started %",
    "mean ms",
    "p99 ms",
    "wasted",
    "messages",
    "used %",
    "lost",
    "twice",
];

/// The number of leading columns that are left-aligned; numbers are right-aligned.
const NAMES: usize = 1;

/// Runs the same scenario of executors by each of these placements, whichever it names itself.
///
/// # Errors
///
/// The first thing that must never be, and was.
pub fn compare_in(
    scenario: &Scenario,
    policies: &[Policy],
    seed: u64,
) -> Result<PlacementsInScenario, Violation> {
    let by = |world: ExecutorsWorld| ExecutorsWorld { placements: policies.to_vec(), ..world };
    let scenario = Scenario { executors: scenario.executors.clone().map(by), ..scenario.clone() };
    let findings = simulate(&scenario, seed)?;
    let row = |policy: &Policy| {
        let name = policy.to_string();
        let value = |what| findings.value(what, &name, None);
        PlacementFigures {
            policy: *policy,
            goodput: value(What::GoodputOfOffered),
            wait_mean_ms: value(What::WaitMeanMs),
            wait_p99_ms: value(What::WaitP99Ms),
            wasted: value(What::WastedPerTask),
            messages: value(What::MessagesPerTask),
            used: value(What::Used),
            lost: value(What::Lost),
            twice: value(What::Twice),
        }
    };
    let rows = policies.iter().map(row).collect();
    Ok(PlacementsInScenario { rows, notes: findings.notes })
}

// === impl PlacementFigures ===

impl PlacementFigures {
    fn cells(&self) -> [String; HEAD.len()] {
        [
            self.policy.to_string(),
            percent(self.goodput),
            number(self.wait_mean_ms, 1),
            number(self.wait_p99_ms, 1),
            number(self.wasted, 2),
            number(self.messages, 1),
            percent(self.used),
            number(self.lost, 0),
            number(self.twice, 0),
        ]
    }
}

// === impl PlacementsInScenario ===

impl fmt::Display for PlacementsInScenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cells: Vec<_> = self.rows.iter().map(PlacementFigures::cells).collect();
        markdown::table(f, HEAD, NAMES, &cells)?;
        self.notes.iter().try_for_each(|note| write!(f, "\n{note}\n"))
    }
}
