use super::bins::Bins;
use super::groups::Cell;
use crate::scenario::{PhaseSpan, Scenario};
use std::time::Duration;

/// The most reasons that are distinguished; all others are one.
const REASONS_MAX: usize = 32;

/// Counts what happens to the requests of a scenario with a gateway. All its memory is bounded by the scenario,
/// not by how many requests there are: at most 256 MB, with 32 classes, as many phases as those may have, a day's
/// time, every kind of latency in each second and every reason of a refusal in each tenth of one.
#[derive(Clone, Debug)]
pub struct Recorder {
    pub(super) scenario: Scenario,
    pub(super) spans: Vec<PhaseSpan>,
    pub(super) bins: Bins,
    /// By phase and class, and whether the upstream that answered was one that no fault names.
    pub(super) cells: Vec<Cell>,
    pub(super) reasons: Vec<String>,
    /// Which upstreams no fault names.
    healthy: Vec<bool>,
}

/// The gateway's response to one attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt<'a> {
    /// Passed to an upstream.
    LetIn,
    /// Refused, for this reason.
    Refused(&'a str),
}

/// A request that is over, after all its attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// When it was due, from the start.
    pub due: Duration,
    /// The end.
    pub at: Duration,
    /// The class, by its index in the scenario.
    pub class: u16,
    /// The upstream that answered, where that is known.
    pub upstream: Option<u16>,
    /// The end.
    pub how: How,
}

/// The end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// With a good answer in time.
    Good,
    /// Refused, and its client gave up.
    Refused,
    /// With an error, cut off, or too late.
    Failed,
}

// === impl Recorder ===

impl Recorder {
    /// An empty book for this scenario.
    #[must_use]
    pub fn new(scenario: &Scenario) -> Self {
        let spans = scenario.phase_spans();
        let classes = scenario.classes.len();
        let upstreams = scenario.upstreams.map_or(0, |upstreams| upstreams.count);
        let named = |upstream: u16| scenario.faults.iter().any(|fault| fault.hits(upstream));
        Self {
            bins: Bins::new(scenario.duration_s, classes),
            cells: vec![Cell::new(); spans.len() * classes * 2],
            reasons: Vec::new(),
            healthy: (0..upstreams).map(|upstream| !named(upstream)).collect(),
            scenario: scenario.clone(),
            spans,
        }
    }

    /// A request was due.
    pub fn due(&mut self, at: Duration, class: u16) {
        if let Some(bin) = self.bins.at(at, usize::from(class)) {
            bin.offered += 1;
        }
        if let Some(cell) = self.cell(at, class, None) {
            cell.offered += 1;
        }
    }

    /// One attempt of a request was decided on.
    pub fn attempt(&mut self, at: Duration, class: u16, attempt: Attempt<'_>) {
        let refused = match attempt {
            Attempt::LetIn => None,
            Attempt::Refused(reason) => Some(self.reason(reason)),
        };
        let Some(bin) = self.bins.at(at, usize::from(class)) else { return };
        match refused {
            None => bin.let_in += 1,
            Some(reason) => bin.refused.add(reason, 1),
        }
    }

    /// A request is over.
    pub fn ended(&mut self, ended: &Ended) {
        let class = usize::from(ended.class);
        let took_us = ended.at.saturating_sub(ended.due).as_micros() as u64;
        if let Some(bin) = self.bins.at(ended.at, class) {
            match ended.how {
                How::Good => bin.good += 1,
                How::Failed => bin.failed += 1,
                How::Refused => {}
            }
        }
        if ended.how == How::Good {
            if let Some(bin) = self.bins.at(ended.due, class) {
                bin.turned_out_good += 1;
                bin.latency_sum_us += took_us;
            }
            self.bins.latency(ended.due, class, took_us);
            if let Some(cell) = self.cell(ended.at, ended.class, ended.upstream) {
                cell.good_then += 1;
            }
        }
        if let Some(cell) = self.cell(ended.due, ended.class, ended.upstream) {
            match ended.how {
                How::Good => {
                    cell.good += 1;
                    cell.latencies.record(took_us);
                }
                How::Refused => cell.refused += 1,
                How::Failed => cell.failed += 1,
            }
        }
    }

    /// Takes over what another recorder of the same scenario counted.
    pub fn add(&mut self, other: &Self) {
        // Reasons have the numbers that they came by: another recorder's are others.
        let mut theirs = other.bins.clone();
        let numbers: Vec<u8> = other.reasons.iter().map(|reason| self.reason(reason)).collect();
        theirs.renumber(&numbers);
        self.bins.add(&theirs);
        for (cell, more) in self.cells.iter_mut().zip(&other.cells) {
            cell.add(more);
        }
    }

    /// The cell that something at this time belongs to, if that time is judged.
    fn cell(&mut self, at: Duration, class: u16, upstream: Option<u16>) -> Option<&mut Cell> {
        let at_s = at.as_secs_f64();
        let phase = self.spans.iter().position(|span| at_s < span.until_s)?;
        if at_s < self.spans[phase].from_s + self.scenario.settle_s {
            return None;
        }
        let healthy = upstream.and_then(|upstream| self.healthy.get(usize::from(upstream)));
        let healthy = usize::from(healthy.copied().unwrap_or(false));
        let classes = self.scenario.classes.len();
        self.cells.get_mut((phase * classes + usize::from(class)) * 2 + healthy)
    }

    fn reason(&mut self, name: &str) -> u8 {
        if let Some(known) = self.reasons.iter().position(|known| known == name) {
            return known as u8;
        }
        if self.reasons.len() == REASONS_MAX {
            return (REASONS_MAX - 1) as u8;
        }
        let is_last = self.reasons.len() == REASONS_MAX - 1;
        self.reasons.push(if is_last { "other".to_owned() } else { name.to_owned() });
        (self.reasons.len() - 1) as u8
    }
}

// === impl Bins ===

impl Bins {
    fn renumber(&mut self, numbers: &[u8]) {
        self.each(|bin| {
            let old = std::mem::take(&mut bin.refused);
            for (reason, count) in old.iter() {
                let number = numbers.get(usize::from(reason)).copied().unwrap_or(reason);
                bin.refused.add(number, count);
            }
        });
    }
}
