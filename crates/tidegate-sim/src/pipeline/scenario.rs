use super::Load;
use std::time::Duration;
use tidegate_core::window::{Law, Stage, WindowConfig};

/// A scenario of the pipeline. Complete: a run uses nothing else.
#[derive(Clone, Debug)]
pub struct PipelineScenario {
    /// The seed of all random numbers.
    pub seed: u64,
    /// The law that sizes windows.
    pub law: Law,
    /// Their bounds.
    pub config: WindowConfig,
    /// The duration.
    pub duration: Duration,
    /// The load that is offered to Accept.
    pub load: Load,
    /// The stages, in the order in which items pass them.
    pub stages: [StageModel; Stage::COUNT],
    /// The fault, if there is one.
    pub fault: Option<Fault>,
}

/// The model of a stage: one chunk at a time.
#[derive(Clone, Copy, Debug)]
pub struct StageModel {
    /// Items a second while it works on them.
    pub items_per_s: f64,
    /// The fixed time of a chunk, for a commit.
    pub chunk_time: Duration,
    /// The most items in a chunk.
    pub chunk_items: u64,
    /// The distribution of its times.
    pub spread: Spread,
    /// The bytes of an item.
    pub item_bytes: u64,
}

/// The distribution of chunk times around their mean.
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
        /// The factor of their times.
        slow_factor: f64,
    },
}

/// A temporary fault.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The stage.
    pub stage: Stage,
    /// The begin.
    pub from: Duration,
    /// The end.
    pub until: Duration,
    /// The kind.
    pub kind: FaultKind,
}

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FaultKind {
    /// The stage is blocked.
    Blocked,
    /// All times are multiplied by this factor.
    Slower(f64),
    /// All times grow gradually to this factor at the end, and stay there.
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

    /// Returns the factor of a stage's times now; `None` while it is blocked.
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

    /// Returns the capacity of the slowest stage now, in items per second.
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
