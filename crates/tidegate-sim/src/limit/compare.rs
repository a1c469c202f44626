use super::{LimitFigures, LimitLaw, LimitScenario, built_in, run};
use crate::markdown::{self, number, percent};
use std::fmt;

/// A comparison of limit laws in the built-in scenarios. Displays as a table in Markdown: one law with all
/// figures, several side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitComparison {
    /// One for each scenario and law.
    pub rows: Vec<LimitRow>,
}

/// Figures of one law in one scenario, over several seeds, as shares of the oracle's.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitRow {
    /// The name of the scenario.
    pub scenario: &'static str,
    /// The law.
    pub law: LimitLaw,
    /// Goodput over the oracle's, mean of the seeds.
    pub goodput: f64,
    /// The same in the worst seed.
    pub goodput_worst: f64,
    /// Limit over the oracle's at the end, mean of the seeds.
    pub limit_ratio: f64,
    /// Limit of all gateways together, mean of the seeds.
    pub limit: f64,
    /// 99th percentile of latency over the oracle's, mean of the seeds.
    pub p99_ratio: f64,
    /// Seconds to settle after the step, in the worst seed; `None` without a step.
    pub settled_s: Option<f64>,
    /// Share of requests served, in the worst seed.
    pub served: f64,
    /// Share of requests that waited for the limit, in the worst seed.
    pub delayed: f64,
    /// Least goodput of a gateway over the greatest, mean of the seeds; `None` with one gateway.
    pub fairness: Option<f64>,
}

const HEAD: [&str; 9] = [
    "scenario",
    "law",
    "goodput %",
    "worst %",
    "limit",
    "p99 ratio",
    "settled s",
    "served %",
    "fairness",
];

/// The number of leading columns that are left-aligned; numbers are right-aligned.
const NAMES: usize = 2;

/// Runs each built-in scenario under each of these laws with so many seeds.
#[must_use]
pub fn compare(laws: &[LimitLaw], first_seed: u64, seeds: u64) -> LimitComparison {
    let mut rows = Vec::new();
    for scenario in built_in() {
        let seeds = first_seed..first_seed + seeds.max(1);
        let oracles: Vec<_> =
            seeds.clone().map(|seed| (seed, run(&scenario, LimitLaw::Static, seed))).collect();
        rows.extend(laws.iter().map(|law| LimitRow::new(&scenario, *law, &oracles)));
    }
    LimitComparison { rows }
}

// === impl LimitRow ===

impl LimitRow {
    /// Runs a law with the seeds of the oracle's runs.
    #[must_use]
    pub fn new(scenario: &LimitScenario, law: LimitLaw, oracles: &[(u64, LimitFigures)]) -> Self {
        let runs: Vec<_> =
            oracles.iter().map(|(seed, oracle)| (run(scenario, law, *seed), oracle)).collect();
        let mean = |of: &dyn Fn(&LimitFigures, &LimitFigures) -> f64| {
            runs.iter().map(|(ours, oracle)| of(ours, oracle)).sum::<f64>() / runs.len() as f64
        };
        let each = |of: &dyn Fn(&LimitFigures, &LimitFigures) -> f64| -> Vec<f64> {
            runs.iter().map(|(ours, oracle)| of(ours, oracle)).collect()
        };
        let least = |values: Vec<f64>| values.into_iter().fold(f64::INFINITY, f64::min);
        let most = |values: Vec<f64>| values.into_iter().fold(0.0, f64::max);
        let goodput = |ours: &LimitFigures, oracle: &LimitFigures| {
            ours.goodput_per_s / oracle.goodput_per_s.max(1e-9)
        };
        let best = scenario.best.last().map_or(1, |(_, limit)| *limit);
        let settled = |ours: &LimitFigures, oracle: &LimitFigures| {
            ours.settled_s(oracle, scenario).unwrap_or_default()
        };
        Self {
            scenario: scenario.name,
            law,
            goodput: mean(&goodput),
            goodput_worst: least(each(&goodput)),
            limit_ratio: mean(&|ours, _| ours.limit) / f64::from(best),
            limit: mean(&|ours, _| ours.limit),
            p99_ratio: mean(&|ours, oracle| ours.p99_ms / oracle.p99_ms.max(1e-9)),
            settled_s: scenario.step_s.map(|_| most(each(&settled))),
            served: least(each(&|ours, _| ours.served)),
            delayed: most(each(&|ours, _| ours.delayed)),
            fairness: (scenario.gateways > 1).then(|| mean(&|ours, _| ours.fairness)),
        }
    }

    fn cells(&self) -> [String; HEAD.len()] {
        [
            self.scenario.to_owned(),
            self.law.to_string(),
            percent(Some(self.goodput)),
            percent(Some(self.goodput_worst)),
            format!("{:.0}", self.limit),
            format!("{:.2}", self.p99_ratio),
            number(self.settled_s, 1),
            percent(Some(self.served)),
            number(self.fairness, 2),
        ]
    }
}

// === impl LimitComparison ===

impl LimitComparison {
    /// Laws, in the order of the columns.
    fn laws(&self) -> Vec<LimitLaw> {
        let mut laws = Vec::new();
        for row in &self.rows {
            if !laws.contains(&row.law) {
                laws.push(row.law);
            }
        }
        laws
    }

    /// Writes one line for each scenario and one column for each law: goodput, worst seed, limit.
    fn write_matrix(&self, f: &mut fmt::Formatter<'_>, laws: &[LimitLaw]) -> fmt::Result {
        let cell = |row: &LimitRow| {
            let (mean, worst) = (row.goodput * 100.0, row.goodput_worst * 100.0);
            format!("{mean:.0} ({worst:.0}), {:.0}", row.limit)
        };
        write!(f, "| scenario |")?;
        laws.iter().try_for_each(|law| write!(f, " {law} |"))?;
        writeln!(f)?;
        writeln!(f, "|---|{}", "---:|".repeat(laws.len()))?;
        for rows in self.rows.chunk_by(|a, b| a.scenario == b.scenario) {
            write!(f, "| {} |", rows[0].scenario)?;
            rows.iter().try_for_each(|row| write!(f, " {} |", cell(row)))?;
            writeln!(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for LimitComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let laws = self.laws();
        if laws.len() > 1 {
            return self.write_matrix(f, &laws);
        }
        let cells: Vec<_> = self.rows.iter().map(LimitRow::cells).collect();
        markdown::table(f, HEAD, NAMES, &cells)
    }
}
