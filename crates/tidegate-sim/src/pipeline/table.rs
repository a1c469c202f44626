use super::{Comparison, Row};
use crate::markdown;
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

/// The number of leading columns that are left-aligned; numbers are right-aligned.
const NAMES: usize = 2;

// === impl Comparison ===

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cells: Vec<_> = self.rows.iter().map(Row::cells).collect();
        markdown::table(f, HEAD, NAMES, &cells)
    }
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
