//! Figures, tables and charts of what was counted.

use super::Recorder;
use super::bins::Bin;
use super::groups::{Cell, Group};
use crate::report::{self, Chart, Findings, Line, Table};
use crate::scenario::{PhaseSpan, What};
use tidegate_core::admission::MessagePriority;

/// Reasons that are no inversion: the limit belongs to one priority or client alone.
const OWN_LIMITS: [&str; 2] = ["priority_limit", "client_share"];

impl Recorder {
    /// Returns the findings from all counts.
    #[must_use]
    pub fn conclude(&self) -> Findings {
        let mut findings = Findings::default();
        let groups = Group::all(&self.scenario.classes, !self.scenario.faults.is_empty());
        for group in &groups {
            self.figures_of(group, None, &mut findings);
            for phase in 0..self.spans.len() {
                self.figures_of(group, Some(phase), &mut findings);
            }
        }
        if let Some(recovery_s) = self.recovery_s() {
            findings.figure(What::RecoveryS, "all", None, recovery_s);
        }
        findings.tables.push(self.table(&groups));
        findings.tables.extend(self.refusals());
        findings.charts = self.charts();
        findings
    }

    fn figures_of(&self, group: &Group, phase: Option<usize>, findings: &mut Findings) {
        let cell = self.cell_of(group, phase);
        let name = phase.map(|phase| &*self.spans[phase].name);
        let mut add = |what, value: Option<f64>| {
            if let Some(value) = value {
                findings.figure(what, &group.name, name, value);
            }
        };
        if let Some(capacity_per_s) = self.scenario.capacity_per_s().filter(|per_s| *per_s > 0.0) {
            let per_s = self.good_per_s(&cell, phase);
            add(What::GoodputOfCapacity, per_s.map(|per_s| per_s / capacity_per_s));
        }
        if !group.healthy {
            let of_offered =
                |count: u64| (cell.offered > 0).then(|| count as f64 / cell.offered as f64);
            add(What::GoodputOfOffered, of_offered(cell.good));
            add(What::RefusedShare, of_offered(cell.refused));
            add(What::FailedShare, of_offered(cell.failed));
            add(What::Inversions, Some(self.inversions(group, phase)));
        }
        add(What::LatencyMeanMs, cell.latencies.mean_ms());
        add(What::LatencyP50Ms, cell.latencies.quantile_ms(0.5));
        add(What::LatencyP99Ms, cell.latencies.quantile_ms(0.99));
    }

    fn cell_of(&self, group: &Group, phase: Option<usize>) -> Cell {
        let phases = phase.map_or(0..self.spans.len(), |phase| phase..phase + 1);
        group.sum(&self.cells, self.scenario.classes.len(), phases)
    }

    /// Good answers a second of a phase, or of all of them; `None` where nothing of it is judged.
    fn good_per_s(&self, cell: &Cell, phase: Option<usize>) -> Option<f64> {
        let of = |span: &PhaseSpan| (span.until_s - span.from_s - self.scenario.settle_s).max(0.0);
        let judged_s = match phase {
            Some(phase) => of(&self.spans[phase]),
            None => self.spans.iter().map(of).sum(),
        };
        (judged_s > 0.0).then(|| cell.good_then as f64 / judged_s)
    }

    /// Returns the share of this group's refusals by shared limits that came beside an admitted lower priority.
    fn inversions(&self, group: &Group, phase: Option<usize>) -> f64 {
        let priority = |class: usize| self.scenario.classes[class].priority;
        let is_shared = |reason: u8| {
            let name = self.reasons.get(usize::from(reason));
            name.is_none_or(|name| !OWN_LIMITS.contains(&&**name))
        };
        let (mut refused_total, mut inverted) = (0_u64, 0_u64);
        for (at_s, row) in self.bins.rows() {
            if !self.is_judged(at_s, phase) {
                continue;
            }
            for refused_of in MessagePriority::ALL {
                let members = row.iter().enumerate();
                let refused = members
                    .filter(|(class, _)| group.has(*class) && priority(*class) == refused_of)
                    .flat_map(|(_, bin)| bin.refused.iter())
                    .filter(|(reason, _)| is_shared(*reason))
                    .map(|(_, count)| u64::from(count))
                    .sum::<u64>();
                let below =
                    row.iter().enumerate().filter(|(class, _)| priority(*class) > refused_of);
                let let_in: u64 = below.map(|(_, bin)| bin.let_in).sum();
                refused_total += refused;
                inverted += refused.min(let_in);
            }
        }
        // Without refusals there is no inversion.
        inverted as f64 / f64::max(refused_total as f64, 1.0)
    }

    fn is_judged(&self, at_s: f64, phase: Option<usize>) -> bool {
        let found = self.spans.iter().position(|span| at_s < span.until_s);
        let judged = found.filter(|found| phase.is_none_or(|phase| phase == *found));
        judged.is_some_and(|found| at_s >= self.spans[found].from_s + self.scenario.settle_s)
    }

    fn table(&self, groups: &[Group]) -> Table {
        use report::Cell as Entry;
        let columns = [
            "phase", "of", "offered", "good", "refused", "failed", "good/s", "p50 ms", "p99 ms",
            "max ms",
        ];
        let mut rows = Vec::new();
        for (phase, span) in self.spans.iter().enumerate() {
            // Priorities and tenants repeat what classes say, where each class has its own.
            for group in groups.iter().filter(|group| !group.name.contains(':')) {
                let cell = self.cell_of(group, Some(phase));
                if cell.offered == 0 && cell.good == 0 {
                    continue;
                }
                let count = |count| if group.healthy { Entry::None } else { Entry::Count(count) };
                rows.push(vec![
                    Entry::Text(span.name.clone()),
                    Entry::Text(group.name.clone()),
                    count(cell.offered),
                    Entry::Count(cell.good),
                    count(cell.refused),
                    count(cell.failed),
                    Entry::number(self.good_per_s(&cell, Some(phase)), 1),
                    Entry::number(cell.latencies.quantile_ms(0.5), 1),
                    Entry::number(cell.latencies.quantile_ms(0.99), 1),
                    Entry::number(cell.latencies.max_ms(), 1),
                ]);
            }
        }
        let title = "Requests that were due in the time that is judged".to_owned();
        Table { title, columns: columns.map(str::to_owned).to_vec(), rows }
    }

    /// Returns the table of refusals by class and reason, if there are any.
    fn refusals(&self) -> Option<Table> {
        use report::Cell as Entry;
        let mut rows = Vec::new();
        for (class, of) in self.scenario.classes.iter().enumerate() {
            for (number, reason) in (0..).zip(&self.reasons) {
                let refused = |row: &[Bin]| row[class].refused.of(number);
                let count: u64 = self.bins.rows().map(|(_, row)| refused(row)).sum();
                if count > 0 {
                    rows.push(vec![
                        Entry::Text(of.name.clone()),
                        Entry::Text(reason.clone()),
                        Entry::Count(count),
                    ]);
                }
            }
        }
        let columns = ["of", "reason", "attempts"].map(str::to_owned).to_vec();
        (!rows.is_empty()).then(|| Table {
            title: "Refusals, each attempt".to_owned(),
            columns,
            rows,
        })
    }

    fn charts(&self) -> Vec<Chart> {
        let slice_s = self.bins.slice_s();
        let mut goodput = Vec::new();
        let mut refused = Vec::new();
        let mut latency = Vec::new();
        let line = |name: &str, points| Line { name: name.to_owned(), points };
        let offered = self.bins.slices().map(|(at_s, bins, _)| {
            (at_s, Some(bins.iter().map(|bin| bin.offered).sum::<u64>() as f64 / slice_s))
        });
        let good = self.bins.slices().map(|(at_s, bins, _)| {
            (at_s, Some(bins.iter().map(|bin| bin.good).sum::<u64>() as f64 / slice_s))
        });
        goodput.push(line("offered", offered.collect()));
        goodput.push(line("good", good.collect()));
        for (class, of) in self.scenario.classes.iter().enumerate() {
            let per_s = |count: fn(&Bin) -> u64| {
                let slices = self.bins.slices();
                slices
                    .map(|(at_s, bins, _)| (at_s, Some(count(&bins[class]) as f64 / slice_s)))
                    .collect()
            };
            goodput.push(line(&of.name, per_s(|bin| bin.good)));
            refused.push(line(&of.name, per_s(Bin::refused_total)));
            let p99 =
                self.bins.slices().map(|(at_s, _, times)| (at_s, times[class].quantile_ms(0.99)));
            latency.push(line(&of.name, p99.collect()));
        }
        let chart = |title: &str, unit: &str, lines| Chart {
            title: title.to_owned(),
            unit: unit.to_owned(),
            lines,
        };
        vec![
            chart("Offered, and good answers", "requests/s", goodput),
            chart("Refused attempts", "requests/s", refused),
            chart("99th percentile of the time from when a request was due", "ms", latency),
        ]
    }
}
