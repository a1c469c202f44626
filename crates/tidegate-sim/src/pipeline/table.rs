use super::{Comparison, Row};
use std::fmt;
use std::time::Duration;

const HEAD: [&str; 10] = [
    "scenario",
    "law",
    "converged s",
    "window",
    "in band %",
    "to least s",
    "recovered s",
    "of ideal %",
    "peak MiB",
    "p99 ms",
];

/// Names stand left, numbers right.
const NAMES: usize = 2;

// === impl Comparison ===

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cells: Vec<[String; HEAD.len()]> = self.rows.iter().map(Row::cells).collect();
        let widths: [usize; HEAD.len()] = std::array::from_fn(|column| {
            let of_cells = cells.iter().map(|row| row[column].chars().count()).max();
            of_cells.unwrap_or_default().max(HEAD[column].chars().count())
        });
        line(f, &HEAD.map(str::to_owned), &widths)?;
        let rules = std::array::from_fn(|column| {
            let width = widths[column];
            if column < NAMES { "-".repeat(width) } else { format!("{}:", "-".repeat(width - 1)) }
        });
        line(f, &rules, &widths)?;
        cells.iter().try_for_each(|row| line(f, row, &widths))
    }
}

fn line(
    f: &mut fmt::Formatter<'_>,
    cells: &[String; HEAD.len()],
    widths: &[usize; HEAD.len()],
) -> fmt::Result {
    for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
        if column < NAMES {
            write!(f, "| {cell:width$} ")?;
        } else {
            write!(f, "| {cell:>width$} ")?;
        }
    }
    writeln!(f, "|")
}

// === impl Row ===

impl Row {
    fn cells(&self) -> [String; HEAD.len()] {
        [
            self.scenario.to_owned(),
            self.law.to_string(),
            seconds(self.converged),
            format!("{:.0}", self.window),
            format!("{:.1}", self.in_band * 100.0),
            seconds(self.least),
            seconds(self.recovered),
            format!("{:.1}", self.of_ideal * 100.0),
            format!("{:.1}", self.bytes_max as f64 / f64::from(1 << 20)),
            self.delay_p99.as_millis().to_string(),
        ]
    }
}

fn seconds(time: Option<Duration>) -> String {
    time.map_or_else(|| "-".to_owned(), |time| format!("{:.1}", time.as_secs_f64()))
}
