use super::progress::Progress;
use serde::Serialize;
use std::collections::BTreeMap;

/// Most points of a series: enough for a chart of a terminal's width.
const POINTS_MAX: usize = 60;
/// Most counters, and most gauges, of a series. Further ones are in the newest progress alone.
const NAMES_MAX: usize = 16;
/// First interval between two points, in milliseconds.
const EVERY_MS_FIRST: u64 = 1_000;
/// Time over which a rate is measured, in milliseconds.
const RATE_OVER_MS: u64 = 10_000;

/// Progress over time, in bounded memory.
///
/// Keeps the newest values of each interval. When there are too many points the interval doubles, and every two
/// points become one: the series always covers the whole run.
///
/// ```
/// use tidegate_core::progress::{ProgressSeries, parse_line};
///
/// let mut series = ProgressSeries::default();
/// series.record(1_000, &parse_line(br#"{"counters": {"rows": 10}}"#)?);
/// series.record(3_000, &parse_line(br#"{"counters": {"rows": 30}}"#)?);
/// assert_eq!(series.rates()["rows"], 10.0);
/// assert_eq!(series.points(2_000).len(), 1);
/// # Ok::<(), tidegate_core::progress::ProgressError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ProgressSeries {
    every_ms: u64,
    counters: Vec<Box<str>>,
    gauges: Vec<Box<str>>,
    points: Vec<Row>,
}

#[derive(Clone, Debug)]
struct Row {
    at_ms: u64,
    counters: Vec<Option<u64>>,
    gauges: Vec<Option<f64>>,
    done: Option<u64>,
}

/// One point of a series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProgressPoint {
    /// Time of the report, in milliseconds of the caller's clock.
    pub at_ms: u64,
    /// Counters then.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<Box<str>, u64>,
    /// Gauges then.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub gauges: BTreeMap<Box<str>, f64>,
    /// Units done then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<u64>,
}

// === impl ProgressSeries ===

impl Default for ProgressSeries {
    fn default() -> Self {
        Self {
            every_ms: EVERY_MS_FIRST,
            counters: Vec::new(),
            gauges: Vec::new(),
            points: Vec::new(),
        }
    }
}

impl ProgressSeries {
    /// Records the newest progress. A time before the last one counts as the last one: clocks may be set back.
    pub fn record(&mut self, now_ms: u64, progress: &Progress) {
        let now_ms = self.points.last().map_or(now_ms, |last| now_ms.max(last.at_ms));
        let row = Row {
            at_ms: now_ms,
            counters: columns(&mut self.counters, &progress.counters),
            gauges: columns(&mut self.gauges, &progress.gauges),
            done: progress.done,
        };
        let slot = now_ms / self.every_ms;
        // The first point stays: rates and charts begin with it.
        let replaces = self.points.len() > 1
            && self.points.last().is_some_and(|last| last.at_ms / self.every_ms == slot);
        if replaces {
            self.points.pop();
        }
        self.points.push(row);
        // Points that are far apart need several doublings.
        while self.points.len() > POINTS_MAX {
            self.thin_out();
        }
    }

    /// Interval between two points, in milliseconds.
    #[must_use]
    pub fn every_ms(&self) -> u64 {
        self.every_ms
    }

    /// Points since a time, the oldest first.
    #[must_use]
    pub fn points(&self, since_ms: u64) -> Vec<ProgressPoint> {
        let rows = self.points.iter().filter(|row| row.at_ms >= since_ms);
        rows.map(|row| ProgressPoint {
            at_ms: row.at_ms,
            counters: named(&self.counters, &row.counters),
            gauges: named(&self.gauges, &row.gauges),
            done: row.done,
        })
        .collect()
    }

    /// Increase of each counter per second, over about the last 10 s. Without two points there is none.
    #[must_use]
    pub fn rates(&self) -> BTreeMap<Box<str>, f64> {
        let Some((first, last)) = self.recent() else { return BTreeMap::new() };
        let rate = |at: usize| {
            let value = |row: &Row| row.counters.get(at).copied().flatten().unwrap_or(0);
            per_second(value(last).saturating_sub(value(first)) as f64, first, last)
        };
        let named = self.counters.iter().enumerate();
        named.map(|(at, name)| (name.clone(), rate(at))).collect()
    }

    /// Units done per second, over about the last 10 s.
    #[must_use]
    pub fn done_rate(&self) -> Option<f64> {
        let (first, last) = self.recent()?;
        let grown = last.done?.saturating_sub(first.done.unwrap_or(0)) as f64;
        Some(per_second(grown, first, last))
    }

    /// Last point, and the newest that is long enough before it.
    fn recent(&self) -> Option<(&Row, &Row)> {
        let (last, earlier) = self.points.split_last()?;
        let long_ago = |row: &&Row| last.at_ms - row.at_ms >= RATE_OVER_MS;
        let first = earlier.iter().rev().find(long_ago).or_else(|| earlier.first())?;
        (last.at_ms > first.at_ms).then_some((first, last))
    }

    fn thin_out(&mut self) {
        self.every_ms = self.every_ms.saturating_mul(2);
        let every_ms = self.every_ms;
        let mut thinned: Vec<Row> = Vec::with_capacity(self.points.len());
        for (at, row) in std::mem::take(&mut self.points).into_iter().enumerate() {
            let same =
                thinned.last().is_some_and(|last| last.at_ms / every_ms == row.at_ms / every_ms);
            if at > 1 && same {
                thinned.pop();
            }
            thinned.push(row);
        }
        self.points = thinned;
    }
}

fn per_second(grown: f64, first: &Row, last: &Row) -> f64 {
    grown * 1_000.0 / (last.at_ms - first.at_ms) as f64
}

/// Values in the order of the names, to which new ones are added while there is room.
fn columns<V: Copy>(names: &mut Vec<Box<str>>, values: &BTreeMap<Box<str>, V>) -> Vec<Option<V>> {
    for name in values.keys() {
        if names.len() < NAMES_MAX && !names.contains(name) {
            names.push(name.clone());
        }
    }
    names.iter().map(|name| values.get(name).copied()).collect()
}

fn named<V: Copy>(names: &[Box<str>], values: &[Option<V>]) -> BTreeMap<Box<str>, V> {
    let present = names.iter().zip(values).filter_map(|(name, value)| Some((name, (*value)?)));
    present.map(|(name, value)| (name.clone(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::parse_line;
    use proptest::prelude::*;

    fn rows(count: u64) -> Progress {
        parse_line(format!(r#"{{"counters": {{"rows": {count}}}, "done": {count}}}"#).as_bytes())
            .unwrap()
    }

    #[test]
    fn a_long_run_is_covered_from_its_begin_to_now() {
        let mut series = ProgressSeries::default();
        for second in 0..10_000 {
            series.record(second * 1_000, &rows(second * 5));
        }
        let points = series.points(0);
        assert!((POINTS_MAX / 2..=POINTS_MAX).contains(&points.len()), "{}", points.len());
        assert_eq!(points[0].at_ms, 0);
        assert_eq!(points[points.len() - 1].counters["rows"], 9_999 * 5);
        assert!(points.windows(2).all(|pair| pair[0].at_ms < pair[1].at_ms));
        let rate = series.rates()["rows"];
        assert!((rate - 5.0).abs() < 1e-9, "{rate}");
        assert_eq!(series.done_rate().map(f64::round), Some(5.0));
    }

    #[test]
    fn reports_within_an_interval_are_one_point() {
        let mut series = ProgressSeries::default();
        for at_ms in 5_000..5_900 {
            series.record(at_ms, &rows(at_ms));
        }
        assert_eq!(series.points(0).len(), 2, "the first and the newest");
        assert_eq!(series.points(0)[1].counters["rows"], 5_899);
        assert!(series.points(6_000).is_empty());
    }

    #[test]
    fn a_clock_that_goes_back_makes_no_rate_negative() {
        let mut series = ProgressSeries::default();
        series.record(9_000, &rows(10));
        series.record(1_000, &rows(20));
        assert!(series.rates().is_empty());
        series.record(10_000, &rows(30));
        assert_eq!(series.rates()["rows"], 20.0);
    }

    proptest! {
        #[test]
        fn memory_is_bounded_and_the_newest_is_there(
            reports in prop::collection::vec((0..100_000_u64, 0..40_usize), 1..400),
        ) {
            let mut series = ProgressSeries::default();
            let mut now_ms = 0;
            for (pause_ms, name) in reports {
                now_ms += pause_ms;
                let mut progress = rows(now_ms);
                progress.counters.insert(format!("c{name}").into(), 1);
                series.record(now_ms, &progress);
                prop_assert!(series.points.len() <= POINTS_MAX);
                prop_assert!(series.counters.len() <= NAMES_MAX);
                prop_assert_eq!(series.points.last().map(|row| row.at_ms), Some(now_ms));
            }
        }
    }
}
