//! Figures and the table of what was counted.

use super::FlowRecorder;
use super::recorder::FlowCell;
use crate::report::{Cell, Findings, Table};
use crate::scenario::{FaultKind, PhaseSpan, What};

const COLUMNS: [&str; 9] = [
    "phase",
    "offered",
    "stored",
    "stored/s",
    "of capacity %",
    "lag p50 ms",
    "lag p99 ms",
    "lag max ms",
    "held MiB",
];

impl FlowRecorder {
    /// Returns the findings from all counts, given the number of records that are neither stored nor held, and the
    /// number that are stored twice where it is known.
    #[must_use]
    pub fn conclude(&self, lost: u64, twice: Option<u64>) -> Findings {
        let mut findings = Findings::default();
        let all = self.cells.iter().fold(FlowCell::default(), FlowCell::and);
        let all_s: f64 = self.spans.iter().map(|span| self.judged_s(span)).sum();
        self.figures_of(&all, all_s, None, &mut findings);
        for (span, cell) in self.spans.iter().zip(&self.cells) {
            self.figures_of(cell, self.judged_s(span), Some(&span.name), &mut findings);
        }
        let mut add = |what, value| findings.figure(what, "all", None, value);
        let possible = self.slices.possible(|at_s| self.scenario.flows_per_s(at_s));
        let stored: u64 = self.slices.all.iter().map(|slice| slice.stored).sum();
        if possible > 0.0 {
            add(What::StoredOfPossible, stored as f64 / possible);
        }
        add(What::Lost, lost as f64);
        if let Some(twice) = twice {
            add(What::Twice, twice as f64);
        }
        let is_blocked = self.scenario.faults.iter().any(|f| f.kind == FaultKind::Blocked);
        // Without snapshots nothing is known of windows.
        if is_blocked && !self.pictures.is_empty() {
            add(What::WindowsLeastS, self.least_s.unwrap_or(f64::INFINITY));
        }
        if let Some(recovery_s) = self.recovery_s() {
            add(What::RecoveryS, recovery_s);
        }
        findings.tables.push(self.table(&all, all_s));
        findings.charts = self.charts();
        findings
    }

    fn figures_of(
        &self,
        cell: &FlowCell,
        judged_s: f64,
        phase: Option<&str>,
        findings: &mut Findings,
    ) {
        let mut add = |what, value: Option<f64>| {
            if let Some(value) = value.filter(|value| value.is_finite()) {
                findings.figure(what, "all", phase, value);
            }
        };
        let stored = cell.stored as f64;
        add(What::StoredOfOffered, Some(stored / cell.offered as f64));
        let capacity_per_s = self.scenario.capacity_per_s().unwrap_or(0.0);
        add(What::StoredOfCapacity, Some(stored / judged_s / capacity_per_s));
        add(What::LagP99Ms, cell.lag_ms(0.99));
        add(What::HeldOfBudget, cell.held_of_budget);
    }

    /// Returns the judged time of a phase in seconds.
    fn judged_s(&self, span: &PhaseSpan) -> f64 {
        (span.until_s - span.from_s - self.scenario.settle_s).max(0.0)
    }

    fn table(&self, all: &FlowCell, all_s: f64) -> Table {
        let mut rows: Vec<_> = self
            .spans
            .iter()
            .zip(&self.cells)
            .map(|(span, cell)| self.row(&span.name, cell, self.judged_s(span)))
            .collect();
        if rows.len() > 1 {
            rows.push(self.row("all", all, all_s));
        }
        let title = "Records in the time that is judged".to_owned();
        Table { title, columns: COLUMNS.map(str::to_owned).to_vec(), rows }
    }

    fn row(&self, name: &str, cell: &FlowCell, judged_s: f64) -> Vec<Cell> {
        let per_s = Some(cell.stored as f64 / judged_s).filter(|per_s| per_s.is_finite());
        let share = per_s.zip(self.scenario.capacity_per_s()).map(|(per_s, all)| per_s / all);
        let mib = cell.held_of_budget.map(|_| cell.held_bytes as f64 / f64::from(1 << 20));
        vec![
            Cell::Text(name.to_owned()),
            Cell::Count(cell.offered),
            Cell::Count(cell.stored),
            Cell::number(per_s, 0),
            Cell::number(share.map(|share| share * 100.0), 1),
            Cell::number(cell.lag_ms(0.5), 1),
            Cell::number(cell.lag_ms(0.99), 1),
            Cell::number(cell.lag_ms(1.0), 1),
            Cell::number(mib, 2),
        ]
    }
}
