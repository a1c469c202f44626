use super::slices::Slices;
use crate::scenario::{FaultKind, PhaseSpan, Scenario};
use hdrhistogram::Histogram;
use std::time::Duration;
use tidegate_core::signal::BackpressureLevel;
use tidegate_core::window::Stage;

/// The longest lag that is distinguished: an hour, in microseconds.
const LONGEST_US: u64 = 3_600_000_000;

/// Counts what happens to records of a scenario with a pipeline.
#[derive(Clone, Debug)]
pub struct FlowRecorder {
    pub(super) scenario: Scenario,
    pub(super) spans: Vec<PhaseSpan>,
    pub(super) slices: Slices,
    /// One for each phase.
    pub(super) cells: Vec<FlowCell>,
    /// At most one for each slice.
    pub(super) pictures: Vec<FlowPicture>,
    /// From the beginning of the first blockage until every window was at its least; `None` before that was seen.
    pub(super) least_s: Option<f64>,
}

/// A snapshot of the pipeline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowPicture {
    /// The time from the start.
    pub at: Duration,
    /// The windows of the stages, in slots.
    pub windows: [u64; Stage::COUNT],
    /// Items in the windows, in slots.
    pub queued: [u64; Stage::COUNT],
    /// Bytes in all of them together.
    pub held_bytes: u64,
    /// The budget in bytes.
    pub budget_bytes: u64,
    /// The least that a window is, in slots.
    pub window_least: u64,
    /// The backpressure level that senders get.
    pub level: BackpressureLevel,
}

/// Counts in the judged time of one phase.
#[derive(Clone, Debug, Default)]
pub(super) struct FlowCell {
    /// Records that were due then.
    pub(super) offered: u64,
    /// Records that were stored then.
    pub(super) stored: u64,
    /// The lag of the records that were due then, in microseconds.
    pub(super) lags: Option<Histogram<u64>>,
    /// The most that was held, in bytes and as a share of the budget. Also before the phase has settled: a
    /// bound is one at any time.
    pub(super) held_bytes: u64,
    pub(super) held_of_budget: Option<f64>,
}

// === impl FlowRecorder ===

impl FlowRecorder {
    /// One for a run of this scenario.
    #[must_use]
    pub fn new(scenario: &Scenario) -> Self {
        let spans = scenario.phase_spans();
        Self {
            scenario: scenario.clone(),
            slices: Slices::new(scenario.duration_s),
            cells: vec![FlowCell::default(); spans.len()],
            spans,
            pictures: Vec::new(),
            least_s: None,
        }
    }

    /// Counts records that were due.
    pub fn offered(&mut self, at: Duration, records: u64) {
        if let Some(slice) = self.slices.at(at) {
            slice.offered += records;
        }
        if let Some(cell) = self.judged(at) {
            cell.offered += records;
        }
    }

    /// Counts records that were due then and are stored now.
    pub fn stored(&mut self, at: Duration, due: Duration, records: u64) {
        if let Some(slice) = self.slices.at(at) {
            slice.stored += records;
        }
        if let Some(cell) = self.judged(at) {
            cell.stored += records;
        }
        if let Some(cell) = self.judged(due) {
            let us = u64::try_from(at.saturating_sub(due).as_micros()).unwrap_or(LONGEST_US);
            cell.lag(us.clamp(1, LONGEST_US), records);
        }
    }

    /// Records a snapshot; called ten times a second.
    pub fn look(&mut self, picture: &FlowPicture) {
        let at_s = picture.at.as_secs_f64();
        self.look_for_least(at_s, picture);
        let Some(phase) = self.spans.iter().position(|span| at_s < span.until_s) else { return };
        self.cells[phase].hold(picture);
        let kept = self.pictures.last().map(|last| last.at + self.slices.width);
        // What ticks a little early is kept all the same.
        if kept.is_none_or(|next| picture.at + self.slices.width / 2 >= next) {
            self.pictures.push(*picture);
        }
    }

    fn look_for_least(&mut self, at_s: f64, picture: &FlowPicture) {
        let blockages = self.scenario.faults.iter().filter(|f| f.kind == FaultKind::Blocked);
        let first = blockages.min_by(|a, b| a.from_s.total_cmp(&b.from_s));
        let Some((fault, stage)) = first.and_then(|fault| Some((fault, fault.stage?))) else {
            return;
        };
        let windows = &picture.windows[..=stage.index()];
        let all_least = windows.iter().all(|window| *window <= picture.window_least);
        if self.least_s.is_none() && fault.is_on(at_s) && all_least {
            self.least_s = Some(at_s - fault.from_s);
        }
    }

    /// The phase of this time, unless it has not settled yet or all is over.
    fn judged(&mut self, at: Duration) -> Option<&mut FlowCell> {
        let at_s = at.as_secs_f64();
        let phase = self.spans.iter().position(|span| at_s < span.until_s)?;
        let is_settled = at_s >= self.spans[phase].from_s + self.scenario.settle_s;
        is_settled.then(|| &mut self.cells[phase])
    }
}

// === impl FlowCell ===

impl FlowCell {
    fn lag(&mut self, us: u64, records: u64) {
        if self.lags.is_none() {
            self.lags = Histogram::new_with_bounds(1, LONGEST_US, 3).ok();
        }
        if let Some(lags) = &mut self.lags {
            lags.saturating_record_n(us, records);
        }
    }

    fn hold(&mut self, picture: &FlowPicture) {
        self.held_bytes = self.held_bytes.max(picture.held_bytes);
        let share = picture.held_bytes as f64 / picture.budget_bytes.max(1) as f64;
        self.held_of_budget = Some(self.held_of_budget.unwrap_or(0.0).max(share));
    }

    /// Both together.
    pub(super) fn and(mut self, other: &Self) -> Self {
        self.offered += other.offered;
        self.stored += other.stored;
        self.lags = match (self.lags.take(), &other.lags) {
            (Some(mut lags), Some(more)) => {
                // Both have the same bounds: nothing can be out of them.
                let _ = lags.add(more);
                Some(lags)
            }
            (mine, theirs) => mine.or_else(|| theirs.clone()),
        };
        self.held_bytes = self.held_bytes.max(other.held_bytes);
        self.held_of_budget = match (self.held_of_budget, other.held_of_budget) {
            (Some(mine), Some(theirs)) => Some(mine.max(theirs)),
            (mine, theirs) => mine.or(theirs),
        };
        self
    }

    /// The lag that this share of the records did not exceed.
    pub(super) fn lag_ms(&self, quantile: f64) -> Option<f64> {
        let lags = self.lags.as_ref().filter(|lags| !lags.is_empty())?;
        Some(lags.value_at_quantile(quantile) as f64 / 1e3)
    }
}
