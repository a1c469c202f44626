use super::{PlacementComparison, PlacementRow};
use crate::markdown;
use std::fmt;

const HEAD: [&str; 10] = [
    "executors",
    "load",
    "placement",
    "wasted",
    "messages",
    "mean ms",
    "p99 ms",
    "goodput %",
    "saturated %",
    "recovery",
];

/// The number of leading columns that are left-aligned; numbers are right-aligned.
const NAMES: usize = 3;

// === impl PlacementComparison ===

impl fmt::Display for PlacementComparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cells: Vec<_> = self.rows.iter().map(PlacementRow::cells).collect();
        markdown::table(f, HEAD, NAMES, &cells)
    }
}

// === impl PlacementRow ===

impl PlacementRow {
    fn cells(&self) -> [String; HEAD.len()] {
        [
            self.executors.to_string(),
            self.load.to_string(),
            self.policy.to_string(),
            format!("{:.2}", self.wasted),
            format!("{:.1}", self.messages),
            format!("{:.1}", self.wait_mean_ms),
            format!("{:.1}", self.wait_p99_ms),
            format!("{:.1}", self.goodput * 100.0),
            format!("{:.1}", self.saturated * 100.0),
            self.recovery.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}")),
        ]
    }
}
