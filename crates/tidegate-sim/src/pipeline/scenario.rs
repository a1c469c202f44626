use super::Load;
use std::time::Duration;
use tidegate_core::window::{Law, Stage, WindowConfig};

/// What is to be simulated. Complete: a run draws on nothing else.
#[derive(Clone, Debug)]
pub struct PipelineScenario {
    /// Where all chance comes from.
    pub seed: u64,
    /// How windows are sized.
    pub law: Law,
    /// Their bounds.
    pub config: WindowConfig,
    /// How long it runs.
    pub duration: Duration,
    /// What is offered to Accept.
    pub load: Load,
    /// The stages, in the order in which items pass them.
    pub stages: [StageModel; Stage::COUNT],
    /// What goes wrong, if anything.
    pub fault: Option<Fault>,
}

/// How a stage works: one chunk at a time.
#[derive(Clone, Copy, Debug)]
pub struct StageModel {
    /// Items a second while it works on them.
    pub items_per_s: f64,
    /// What a chunk takes on top, however many items it has: a commit.
    pub chunk_time: Duration,
    /// The most items in a chunk.
    pub chunk_items: u64,
    /// How its times vary.
    pub spread: Spread,
    /// The bytes of an item.
    pub item_bytes: u64,
}

/// How the times of chunks vary around their mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spread {
    /// Not at all.
    Fixed,
    /// Exponentially.
    Exponential,
    /// Exponentially around two means.
    TwoSpeeds {
        /// The share of slow chunks, 0 … 1.
        slow_share: f64,
        /// How many times as long those take.
        slow_factor: f64,
    },
}

/// Something that goes wrong for a while.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// Where.
    pub stage: Stage,
    /// When it begins.
    pub from: Duration,
    /// When it is over.
    pub until: Duration,
    /// What it is.
    pub kind: FaultKind,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultKind {
    /// Nothing is done.
    Blocked,
    /// Everything takes this many times as long.
    Slower(f64),
    /// Everything takes longer and longer, up to this many times as long at the end, and stays so.
    Drift(f64),
}

// === impl PipelineScenario ===

impl PipelineScenario {
    /// Stages that are four times as fast as Store, which does 100,000 items a second; twice that is offered.
    #[must_use]
    pub fn overloaded(law: Law, duration: Duration) -> Self {
        let fast = StageModel {
            items_per_s: 400_000.0,
            chunk_time: Duration::ZERO,
            chunk_items: 64,
            spread: Spread::Exponential,
            item_bytes: 256,
        };
        let store = StageModel { items_per_s: 100_000.0, ..fast };
        Self {
            seed: 1,
            law,
            config: WindowConfig::default(),
            duration,
            load: Load::Steady { per_s: 200_000.0 },
            stages: [fast, fast, fast, fast, store],
            fault: None,
        }
    }

    /// The slowest stage.
    #[must_use]
    pub fn bottleneck(&self) -> Stage {
        let slower = |a: &Stage, b: &Stage| {
            self.stages[a.index()].capacity().total_cmp(&self.stages[b.index()].capacity())
        };
        Stage::ALL.into_iter().min_by(slower).unwrap_or(Stage::Store)
    }

    /// How many times as long the work of a stage takes now; none while it does none.
    pub(super) fn slowness(&self, stage: usize, now: Duration) -> Option<f64> {
        let Some(fault) = self.fault.filter(|fault| fault.stage.index() == stage) else {
            return Some(1.0);
        };
        let is_on = (fault.from..fault.until).contains(&now);
        match fault.kind {
            FaultKind::Blocked => (!is_on).then_some(1.0),
            FaultKind::Slower(factor) => Some(if is_on { factor } else { 1.0 }),
            FaultKind::Drift(factor) => {
                let length = (fault.until - fault.from).as_secs_f64();
                let done = now.saturating_sub(fault.from).as_secs_f64() / length;
                Some(1.0 + (factor - 1.0) * done.min(1.0))
            }
        }
    }

    /// What the slowest stage could do now, items a second.
    pub(super) fn capacity(&self, now: Duration) -> f64 {
        let of = |(i, stage): (usize, &StageModel)| {
            self.slowness(i, now).map_or(0.0, |slowness| stage.capacity() / slowness)
        };
        self.stages.iter().enumerate().map(of).fold(f64::INFINITY, f64::min)
    }
}

// === impl StageModel ===

impl StageModel {
    /// Items a second with full chunks.
    #[must_use]
    pub fn capacity(&self) -> f64 {
        self.chunk_items as f64 / self.chunk_s(self.chunk_items)
    }

    pub(super) fn chunk_s(&self, items: u64) -> f64 {
        self.chunk_time.as_secs_f64() + items as f64 / self.items_per_s
    }
}
