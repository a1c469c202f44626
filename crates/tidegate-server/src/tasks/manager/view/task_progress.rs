use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tidegate::progress::{Progress, ProgressPoint, ProgressSeries};

/// Progress of a running attempt, over time.
#[derive(Debug, Default)]
pub struct TaskProgress {
    newest: Progress,
    series: ProgressSeries,
    updated_ms: u64,
}

/// Progress of a task, as the API shows it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgressView {
    /// Newest values.
    #[serde(flatten)]
    pub progress: Progress,
    /// Increase of each counter per second, over about the last 10 s.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rates: BTreeMap<Box<str>, f64>,
    /// Units done per second, over about the last 10 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_rate: Option<f64>,
    /// Time of the last report, in milliseconds of Unix time.
    pub updated_ms: u64,
}

/// Progress of a task over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProgressSeriesView {
    /// Newest values; absent before the first report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest: Option<ProgressView>,
    /// Interval between two points, in milliseconds. Doubles as the task runs.
    pub every_ms: u64,
    /// Points, the oldest first.
    pub points: Vec<ProgressPoint>,
}

// === impl TaskProgress ===

impl TaskProgress {
    /// Adds newer progress.
    pub(in crate::tasks::manager) fn add(&mut self, newer: &Progress, now_ms: u64) {
        self.newest.merge(newer);
        self.series.record(now_ms, &self.newest);
        self.updated_ms = now_ms;
    }

    /// The newest progress; empty before the first report.
    pub(in crate::tasks::manager) fn view(&self) -> ProgressView {
        ProgressView {
            progress: self.newest.clone(),
            rates: self.series.rates(),
            done_rate: self.series.done_rate(),
            updated_ms: self.updated_ms,
        }
    }

    /// The newest progress, if there is some.
    pub(in crate::tasks::manager) fn newest(&self) -> Option<ProgressView> {
        (self.updated_ms > 0).then(|| self.view())
    }

    /// Points since a time.
    pub(in crate::tasks::manager) fn series(&self, since_ms: u64) -> ProgressSeriesView {
        ProgressSeriesView {
            newest: self.newest(),
            every_ms: self.series.every_ms(),
            points: self.series.points(since_ms),
        }
    }
}
