use super::simulate;
use crate::Violation;
use crate::markdown::{self, number, percent};
use crate::scenario::{PipelineWorld, Scenario, What};
use std::fmt;
use tidegate_core::window::Law;

/// A comparison of laws in one scenario. Displays as a table in Markdown.
#[derive(Clone, Debug, PartialEq)]
pub struct LawComparison {
    /// One for each law.
    pub rows: Vec<LawRow>,
}

/// The figures of one law in a scenario; `None` where the scenario has no such figure.
#[derive(Clone, Debug, PartialEq)]
pub struct LawRow {
    /// The law.
    pub law: Law,
    /// Records stored, of those offered.
    pub stored_of_offered: Option<f64>,
    /// Records stored, of those that windows without end would have let through.
    pub stored_of_possible: Option<f64>,
    /// 99 % of records were stored so soon, in milliseconds.
    pub lag_p99_ms: Option<f64>,
    /// The most bytes held, of the budget.
    pub held_of_budget: Option<f64>,
    /// From the beginning of a blockage until every window was at its least; infinite when that never was.
    pub windows_least_s: Option<f64>,
    /// From the end of the last fault until all was as before; infinite when that never was.
    pub recovery_s: Option<f64>,
}

const HEAD: [&str; 7] =
    ["law", "stored %", "of possible %", "lag p99 ms", "of budget %", "to least s", "recovered s"];

/// The number of leading columns that are left-aligned; numbers are right-aligned.
const NAMES: usize = 1;

/// Runs the same scenario of a pipeline under each of these laws.
///
/// # Errors
///
/// The first thing that must never be, and was.
pub fn compare_in(
    scenario: &Scenario,
    laws: &[Law],
    seed: u64,
) -> Result<LawComparison, Violation> {
    let row = |law: &Law| LawRow::new(scenario, *law, seed);
    Ok(LawComparison { rows: laws.iter().map(row).collect::<Result<_, _>>()? })
}

// === impl LawRow ===

impl LawRow {
    fn new(scenario: &Scenario, law: Law, seed: u64) -> Result<Self, Violation> {
        let under = |world: PipelineWorld| PipelineWorld { law, ..world };
        let scenario = Scenario { pipeline: scenario.pipeline.map(under), ..scenario.clone() };
        let findings = simulate(&scenario, seed)?;
        let value = |what| findings.value(what, "all", None);
        Ok(Self {
            law,
            stored_of_offered: value(What::StoredOfOffered),
            stored_of_possible: value(What::StoredOfPossible),
            lag_p99_ms: value(What::LagP99Ms),
            held_of_budget: value(What::HeldOfBudget),
            windows_least_s: value(What::WindowsLeastS),
            recovery_s: value(What::RecoveryS),
        })
    }

    fn cells(&self) -> [String; HEAD.len()] {
        [
            self.law.to_string(),
            percent(self.stored_of_offered),
            percent(self.stored_of_possible),
            number(self.lag_p99_ms, 0),
            percent(self.held_of_budget),
            number(self.windows_least_s, 1),
            number(self.recovery_s, 1),
        ]
    }
}

// === impl LawComparison ===

impl fmt::Display for LawComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cells: Vec<_> = self.rows.iter().map(LawRow::cells).collect();
        markdown::table(f, HEAD, NAMES, &cells)
    }
}
