use super::channel::Channel;
use super::stages::STEP;
use super::{FaultKind, PipelineReport, PipelineScenario, Tick};
use std::collections::VecDeque;
use std::time::Duration;
use tidegate_core::window::{AdaptiveScheduler, Grant, Stage};

/// Longer delays are counted as this long.
const DELAY_MS_MAX: usize = 60_000;

/// The counts of a run.
pub(super) struct Measures {
    scenario: PipelineScenario,
    offered: u64,
    delivered: u64,
    /// The backlog and the output of a pipeline with infinite windows.
    ideal_left: f64,
    ideal_done: f64,
    backlogged_ms: [(u64, u64); Stage::COUNT],
    bytes_max: u64,
    /// When how many items were taken that have not left yet. Items leave in the order in which they came.
    inside: VecDeque<(u64, u64)>,
    /// Items by their delay in milliseconds.
    delays: Vec<u64>,
    ticks: Vec<Tick>,
}

// === impl Measures ===

impl Measures {
    pub(super) fn new(scenario: &PipelineScenario) -> Self {
        Self {
            scenario: scenario.clone(),
            offered: 0,
            delivered: 0,
            ideal_left: 0.0,
            ideal_done: 0.0,
            backlogged_ms: [(0, 0); Stage::COUNT],
            bytes_max: 0,
            inside: VecDeque::new(),
            delays: vec![0; DELAY_MS_MAX + 1],
            ticks: Vec::new(),
        }
    }

    pub(super) fn offered(&mut self, offered: u64, taken: u64, now: Duration) {
        self.offered += offered;
        self.ideal_left += offered as f64;
        let done = self.ideal_left.min(self.scenario.capacity(now) * STEP.as_secs_f64());
        self.ideal_left -= done;
        self.ideal_done += done;
        if taken > 0 {
            self.inside.push_back((millis(now), taken));
        }
    }

    pub(super) fn delivered(&mut self, items: u64, now: Duration) {
        self.delivered += items;
        let mut left = items;
        while let Some((since_ms, count)) = self.inside.front_mut() {
            let leaves = left.min(*count);
            let delay_ms = (millis(now) - *since_ms) as usize;
            self.delays[delay_ms.min(DELAY_MS_MAX)] += leaves;
            *count -= leaves;
            left -= leaves;
            if *count > 0 {
                break;
            }
            self.inside.pop_front();
        }
    }

    /// Looks at every step, not only when the scheduler does.
    pub(super) fn look(
        &mut self,
        now: Duration,
        channels: &[Channel; Stage::COUNT],
        scheduler: &AdaptiveScheduler,
    ) {
        let bytes = channels.iter().map(Channel::bytes).sum();
        self.bytes_max = self.bytes_max.max(bytes);
        if self.is_blocked(now) {
            return;
        }
        let config = scheduler.config();
        for stage in Stage::ALL {
            let channel = &channels[stage.index()];
            if channel.waits || channel.items() >= config.backlog_min() {
                let occupancy = channel.items() as f64 / scheduler.state(stage).window();
                // The last digit is that of the division.
                let in_band = occupancy >= config.occupancy_low - 1e-9
                    && occupancy <= config.occupancy_high + 1e-9;
                let (backlogged_ms, in_band_ms) = &mut self.backlogged_ms[stage.index()];
                *backlogged_ms += 1;
                *in_band_ms += u64::from(in_band);
            }
        }
    }

    pub(super) fn tick(
        &mut self,
        now: Duration,
        channels: &[Channel; Stage::COUNT],
        grants: &[Grant; Stage::COUNT],
    ) {
        self.ticks.push(Tick {
            at_ms: millis(now),
            windows: grants.map(|grant| grant.window),
            queued: std::array::from_fn(|i| channels[i].items()),
            waits: std::array::from_fn(|i| channels[i].waits),
            causes: grants.map(|grant| grant.cause),
            delivered: self.delivered,
        });
    }

    pub(super) fn into_report(self, held: u64, unsent: u64) -> PipelineReport {
        let (backlogged, in_band) =
            self.backlogged_ms.iter().fold((0, 0), |sum, ms| (sum.0 + ms.0, sum.1 + ms.1));
        PipelineReport {
            offered: self.offered,
            delivered: self.delivered,
            held,
            unsent,
            ideal: self.ideal_done,
            in_band: if backlogged == 0 { 1.0 } else { in_band as f64 / backlogged as f64 },
            backlogged_ms: self.backlogged_ms,
            bytes_max: self.bytes_max,
            delay_p99_ms: quantile(&self.delays, 0.99),
            ticks: self.ticks,
        }
    }

    fn is_blocked(&self, now: Duration) -> bool {
        self.scenario.fault.is_some_and(|fault| {
            fault.kind == FaultKind::Blocked && (fault.from..fault.until).contains(&now)
        })
    }
}

fn millis(time: Duration) -> u64 {
    time.as_millis() as u64
}

fn quantile(counts: &[u64], share: f64) -> u64 {
    let rank = (counts.iter().sum::<u64>() as f64 * share) as u64;
    let mut seen = 0;
    counts
        .iter()
        .position(|count| {
            seen += count;
            seen > rank
        })
        .unwrap_or_default() as u64
}
