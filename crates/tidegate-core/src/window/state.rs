use super::estimates::Estimates;
use super::latency::Latency;
use super::{Cause, StageSample, WindowConfig};
use serde::Serialize;
use std::time::Duration;

/// CUBIC's curve is back at W_max after this time, and as far above it as it began below after twice this time. By
/// then the old W_max is outdated, and W grows as if it had never been cut.
pub(super) const CUBIC_S: f64 = 8.0;

/// State of one stage's control law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StageState {
    /// Window that the law decided on.
    pub(super) wanted: f64,
    /// The same, within the slew limit.
    pub(super) applied: f64,
    /// The same, within the budget: the window in force.
    pub(super) granted: f64,
    pub(super) law_state: LawState,
    pub(super) cause: Cause,
    pub(super) decreases: u64,
    /// CUBIC's W_max: the window before the last decrease; `None` before the first.
    pub(super) peak: Option<f64>,
    pub(super) decreased_at: Duration,
    pub(super) before_stall: f64,
    /// Window of Little's law.
    pub(super) little: f64,
    /// Shortest lease time, in seconds.
    pub(super) lease_floor_s: f64,
    pub(super) occupancy: f64,
    pub(super) estimates: Estimates,
    pub(super) latency: Latency,
    pub(super) since: SinceDecision,
    at: Option<Duration>,
    decided_at: Duration,
}

/// Phase of a stage's law.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LawState {
    /// Never cut: grows at the maximum rate.
    Slow,
    /// Cut before: grows along the curve back to W_max.
    Cubic,
    /// Nothing leaves.
    Stalled,
    /// The only phase of `Law::Seed`.
    Aimd,
}

/// Measurements since the last decision.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct SinceDecision {
    waited_s: f64,
    elapsed_s: f64,
    samples: u32,
    queued_sum: f64,
}

// === impl StageState ===

impl StageState {
    /// Creates the state of an unknown stage, at the minimum window.
    #[must_use]
    pub fn new(config: &WindowConfig) -> Self {
        let least = config.window_min as f64;
        Self {
            wanted: least,
            applied: least,
            granted: least,
            law_state: LawState::Slow,
            cause: Cause::Hold,
            decreases: 0,
            peak: None,
            decreased_at: Duration::ZERO,
            before_stall: least,
            little: config.window_max as f64,
            lease_floor_s: 0.0,
            occupancy: 0.0,
            estimates: Estimates::default(),
            latency: Latency::default(),
            since: SinceDecision::default(),
            at: None,
            decided_at: Duration::ZERO,
        }
    }

    /// Window in force, in slots.
    #[must_use]
    pub fn window(&self) -> f64 {
        self.granted
    }

    /// Window that the law wants, before the slew limit and the budget, in slots.
    #[must_use]
    pub fn wanted(&self) -> f64 {
        self.wanted
    }

    /// Items divided by the window in force when they were counted. 0 … 1 except in a stall.
    #[must_use]
    pub fn occupancy(&self) -> f64 {
        self.occupancy
    }

    /// λ: arrivals per second.
    #[must_use]
    pub fn arrival_rate(&self) -> f64 {
        self.estimates.arrival_rate
    }

    /// μ: departures per second while there is work; 0 before it is known.
    #[must_use]
    pub fn service_rate(&self) -> f64 {
        self.estimates.service_rate.unwrap_or_default()
    }

    /// Mean size of an item, in bytes; 0 before the first.
    #[must_use]
    pub fn item_bytes(&self) -> f64 {
        self.estimates.item_bytes.unwrap_or_default()
    }

    /// Time until the window is full to the upper end of its band; `None` if it does not fill.
    #[must_use]
    pub fn time_to_fill(&self, config: &WindowConfig) -> Option<Duration> {
        let room = config.occupancy_high * self.granted - self.estimates.queued_items as f64;
        let surplus = self.estimates.surplus();
        let seconds = room.max(0.0) / surplus;
        (surplus > 0.0).then(|| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    }

    /// Baseline of the service time's p99, in nanoseconds; 0 before it is known.
    #[must_use]
    pub fn baseline_p99_ns(&self) -> f64 {
        self.latency.baseline_ns.unwrap_or_default()
    }

    /// W_L: the window of Little's law.
    #[must_use]
    pub fn little_window(&self) -> f64 {
        self.little
    }

    /// Phase of the law.
    #[must_use]
    pub fn law_state(&self) -> LawState {
        self.law_state
    }

    /// Cause of the last change.
    #[must_use]
    pub fn cause(&self) -> Cause {
        self.cause
    }

    /// Decreases because of congestion or a stall, since the start.
    #[must_use]
    pub fn decreases(&self) -> u64 {
        self.decreases
    }

    /// True if nothing leaves this stage or one after it.
    #[must_use]
    pub fn is_stalled(&self) -> bool {
        self.law_state == LawState::Stalled
    }

    /// Fill as its senders see it, 0 and more: 1 if nothing leaves, and the occupancy if the window was cut
    /// recently. Otherwise a window can't hold more than its credits, except for one message larger than a small
    /// window, which is no congestion.
    #[must_use]
    pub fn pressure(&self, config: &WindowConfig, now: Duration) -> f64 {
        match self.law_state {
            LawState::Stalled => 1.0,
            LawState::Aimd => self.occupancy,
            LawState::Slow | LawState::Cubic if self.was_cut(now) => self.occupancy,
            LawState::Slow | LawState::Cubic => self.occupancy.min(config.granted_share()),
        }
    }

    /// True if the last cut is so recent that items from before it may still be there.
    pub(super) fn was_cut(&self, now: Duration) -> bool {
        let since_cut = now.saturating_sub(self.decreased_at).as_secs_f64();
        self.peak.is_some() && since_cut < CUBIC_S
    }

    /// True if the stage was full since the last decision, on average.
    pub(super) fn is_pressing(&self, config: &WindowConfig) -> bool {
        self.since.queued_mean() >= config.occupancy_low * self.granted
    }

    pub(super) fn observe(&mut self, config: &WindowConfig, sample: &StageSample, now: Duration) {
        let elapsed = match self.at {
            Some(at) => now.saturating_sub(at),
            None => {
                self.decided_at = now;
                config.delta
            }
        };
        self.at = Some(self.at.map_or(now, |at| at.max(now)));
        self.occupancy = sample.queued_items as f64 / self.granted.max(1.0);
        self.estimates.observe(config, sample, elapsed);
        self.latency.observe(sample);
        self.since.observe(sample, elapsed);
    }

    /// True if a decision is due. A timer that ticks slightly early does not wait for the next tick.
    pub(super) fn is_due(&self, config: &WindowConfig, now: Duration) -> bool {
        now.saturating_sub(self.decided_at).saturating_add(config.delta / 2) >= config.period
    }

    /// Returns the measurements since the last decision, and starts the next period.
    pub(super) fn begin_period(&mut self, now: Duration) -> SinceDecision {
        self.decided_at = now;
        std::mem::take(&mut self.since)
    }
}

// === impl SinceDecision ===

impl SinceDecision {
    fn observe(&mut self, sample: &StageSample, elapsed: Duration) {
        self.waited_s += sample.waited_ns as f64 / 1e9;
        self.elapsed_s += elapsed.as_secs_f64();
        self.samples = self.samples.saturating_add(1);
        self.queued_sum += sample.queued_items as f64;
    }

    /// Share of the time in which a sender waited, 0 … 1.
    pub(super) fn waited_share(&self) -> f64 {
        if self.elapsed_s > 0.0 { (self.waited_s / self.elapsed_s).min(1.0) } else { 0.0 }
    }

    pub(super) fn queued_mean(&self) -> f64 {
        self.queued_sum / f64::from(self.samples.max(1))
    }
}

// === impl LawState ===

impl LawState {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Slow, Self::Cubic, Self::Stalled, Self::Aimd];

    /// Name in labels and logs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Slow => "slow",
            Self::Cubic => "cubic",
            Self::Stalled => "stalled",
            Self::Aimd => "aimd",
        }
    }
}
