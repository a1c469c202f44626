use super::budget::{self, Shares};
use super::{
    Cause, Grant, Law, Neighbours, Stage, StageSample, StageState, WindowConfig, WindowConfigError,
    step,
};
use std::time::Duration;

/// Adaptive windows of all stages.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::window::{AdaptiveScheduler, Law, Stage, StageSample, WindowConfig};
///
/// let mut scheduler = AdaptiveScheduler::new(WindowConfig::default(), Law::default())?;
/// let idle = [StageSample::default(); Stage::COUNT];
/// let grants = scheduler.tick(Duration::from_millis(100), &idle, 0);
/// assert_eq!((grants[0].window, grants[0].credits), (1_024, 609));
/// # Ok::<(), tidegate_core::window::WindowConfigError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct AdaptiveScheduler {
    config: WindowConfig,
    law: Law,
    states: [StageState; Stage::COUNT],
    grants: [Grant; Stage::COUNT],
    rho: f64,
}

// === impl AdaptiveScheduler ===

impl AdaptiveScheduler {
    /// Creates a scheduler with every window at the minimum.
    ///
    /// # Errors
    ///
    /// If a value of the configuration is out of range.
    pub fn new(config: WindowConfig, law: Law) -> Result<Self, WindowConfigError> {
        let config = config.check()?;
        let states = [StageState::new(&config); Stage::COUNT];
        let mut scheduler =
            Self { config, law, states, grants: [Grant::default(); Stage::COUNT], rho: 1.0 };
        scheduler.grant(&[StageSample::default(); Stage::COUNT], 0);
        Ok(scheduler)
    }

    /// Records the measurements of each stage since the last call, and returns the new grants. Call it every
    /// [`delta`](WindowConfig::delta); `now` is the time since any fixed start. `reserved_bytes` is memory held
    /// elsewhere for the pipeline, such as partial frames, and reduces the budget.
    ///
    /// Stages are decided from Store to Accept, so that each knows if the next one stalls. Resize the channels in
    /// that order too: [`downstream_first`](Self::downstream_first).
    pub fn tick(
        &mut self,
        now: Duration,
        samples: &[StageSample; Stage::COUNT],
        reserved_bytes: u64,
    ) -> &[Grant; Stage::COUNT] {
        let mut downstream_stalls = false;
        for i in (0..Stage::COUNT).rev() {
            let upstream_presses = i > 0 && self.states[i - 1].is_pressing(&self.config);
            let neighbours = Neighbours { upstream_presses, downstream_stalls };
            let state = step(self.law, &self.config, &self.states[i], &samples[i], now, neighbours);
            downstream_stalls = state.is_stalled();
            self.states[i] = state;
        }
        self.grant(samples, reserved_bytes);
        &self.grants
    }

    /// Current grants, by [`Stage::index`].
    #[must_use]
    pub fn grants(&self) -> &[Grant; Stage::COUNT] {
        &self.grants
    }

    /// Current grants, Store first: the order in which channels are resized.
    pub fn downstream_first(&self) -> impl Iterator<Item = (Stage, &Grant)> {
        Stage::ALL.into_iter().zip(&self.grants).rev()
    }

    /// State of a stage, for metrics.
    #[must_use]
    pub fn state(&self, stage: Stage) -> &StageState {
        &self.states[stage.index()]
    }

    /// Share of the law's demand above the floors that fits the budget, 0 … 1. Below 1 memory is short, which is
    /// worth a warning.
    #[must_use]
    pub fn rho(&self) -> f64 {
        self.rho
    }

    /// Law in force.
    #[must_use]
    pub fn law(&self) -> Law {
        self.law
    }

    /// Configuration in force.
    #[must_use]
    pub fn config(&self) -> &WindowConfig {
        &self.config
    }

    fn grant(&mut self, samples: &[StageSample; Stage::COUNT], reserved_bytes: u64) {
        let Shares { windows, bytes, rho } =
            budget::share(self.law, &self.config, &self.states, samples, reserved_bytes);
        let share = match self.law {
            Law::Cubic => self.config.granted_share(),
            Law::Seed => 1.0,
        };
        for (i, state) in self.states.iter_mut().enumerate() {
            state.granted = windows[i];
            let is_cut = windows[i] < state.applied * (1.0 - 1e-9);
            self.grants[i] = Grant {
                window: windows[i] as u64,
                credits: (windows[i] * share) as u64,
                bytes: bytes[i],
                cause: if is_cut { Cause::Budget } else { state.cause },
            };
        }
        self.rho = rho;
    }
}
