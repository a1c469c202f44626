use super::command;
use super::flags::SimFlags;
use super::scenario::SelectedScenario;
use super::shrunk::ShrunkReplay;
use crate::failure::Failure;
use crate::terminal::{print, report_json};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::process::ExitCode;
use tidegate_sim::report::{Report, number_or_never};
use tidegate_sim::scenario::{Expectation, Mode, Scenario};
use tidegate_sim::{Violation, simulate};

/// Summary of all runs.
#[derive(Debug, Serialize)]
struct Summary {
    scenario: String,
    seeds: u64,
    checks: Vec<ExpectationResults>,
    violations: Vec<ViolationFound>,
    /// Shrunk replay of the first violation.
    shortest: Option<ShrunkReplay>,
    decisions: u64,
}

/// Results of one expectation over all runs.
#[derive(Debug, Serialize)]
struct ExpectationResults {
    #[serde(flatten)]
    expected: Expectation,
    held: u64,
    #[serde(serialize_with = "number_or_never")]
    least: Option<f64>,
    #[serde(serialize_with = "number_or_never")]
    median: Option<f64>,
    #[serde(serialize_with = "number_or_never")]
    most: Option<f64>,
    #[serde(skip)]
    found: Vec<f64>,
}

/// Violation of an invariant.
#[derive(Debug, Serialize)]
struct ViolationFound {
    seed: u64,
    #[serde(flatten)]
    violation: Violation,
    /// Command that repeats the run.
    command: String,
}

/// Runs a scenario with the seeds 1 to `seeds`.
pub fn run(selected: &SelectedScenario, seeds: u64, flags: &SimFlags) -> Result<ExitCode, Failure> {
    let scenario = &selected.scenario;
    let bar = bar(seeds);
    let mut summary = Summary::new(scenario, seeds);
    for seed in 1..=seeds {
        match simulate(scenario, seed, flags.plant) {
            Ok(findings) => summary.add(&Report::new(scenario, Mode::Sim, seed, findings)),
            Err(violation) => {
                let command = command::again(flags, seed, &selected.edits);
                summary.violations.push(ViolationFound { seed, violation, command });
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    summary.conclude();
    let shrunk = |found: &ViolationFound| {
        ShrunkReplay::find(selected, found.seed, found.violation.clone(), flags)
    };
    summary.shortest = summary.violations.first().map(shrunk);
    match (flags.json, &summary.shortest) {
        (true, _) => print(&report_json(&summary)?),
        (false, None) => print(&summary.text()),
        (false, Some(shortest)) => print(&format!("{}{shortest}", summary.text())),
    }
    Ok(if summary.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn bar(seeds: u64) -> ProgressBar {
    if !io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(seeds), ProgressDrawTarget::stderr_with_hz(10));
    match ProgressStyle::with_template("{bar:40} {pos}/{len} seeds, {eta} left") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

// === impl Summary ===

impl Summary {
    fn new(scenario: &Scenario, seeds: u64) -> Self {
        let held = |expected: &Expectation| ExpectationResults {
            expected: expected.clone(),
            held: 0,
            least: None,
            median: None,
            most: None,
            found: Vec::new(),
        };
        let judged = scenario.expectations.iter().filter(|expected| expected.is_for(Mode::Sim));
        Self {
            scenario: scenario.name.clone(),
            seeds,
            checks: judged.map(held).collect(),
            violations: Vec::new(),
            shortest: None,
            decisions: 0,
        }
    }

    fn add(&mut self, report: &Report) {
        self.decisions += report.findings.decisions;
        for (sum, check) in self.checks.iter_mut().zip(&report.checks) {
            sum.held += u64::from(check.holds);
            sum.found.extend(check.found);
        }
    }

    fn conclude(&mut self) {
        for check in &mut self.checks {
            check.found.sort_by(f64::total_cmp);
            check.least = check.found.first().copied();
            check.median = check.found.get(check.found.len() / 2).copied();
            check.most = check.found.last().copied();
        }
    }

    fn runs(&self) -> u64 {
        self.seeds - self.violations.len() as u64
    }

    fn holds(&self) -> bool {
        self.violations.is_empty() && self.checks.iter().all(|check| check.held == self.seeds)
    }

    fn text(&self) -> String {
        let mut text = String::new();
        let _ = writeln!(text, "{} with the seeds 1 … {}", self.scenario, self.seeds);
        let _ = writeln!(
            text,
            "{} decisions; invariants violated in {} of {} runs\n",
            self.decisions,
            self.violations.len(),
            self.seeds
        );
        let value = |value: Option<f64>| match value {
            None => "-".to_owned(),
            Some(value) if value.is_infinite() => "never".to_owned(),
            Some(value) => format!("{value:.3}"),
        };
        for check in &self.checks {
            let (verdict, count) = match self.runs() - check.held {
                0 => ("held", check.held),
                missed => ("MISSED", missed),
            };
            let _ = writeln!(
                text,
                "{verdict} in {count} of {}: {}: {} … {}, median {}",
                self.runs(),
                check.expected,
                value(check.least),
                value(check.most),
                value(check.median),
            );
        }
        text
    }
}
