use super::cubic::CUBIC_S;
use super::estimates::Estimates;
use super::latency::Latency;
use super::{Cause, StageSample, WindowConfig};
use serde::Serialize;
use std::time::Duration;

/// All that the law knows of one stage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StageState {
    /// What the law decided on.
    pub(super) wanted: f64,
    /// That, as fast as a window may move.
    pub(super) applied: f64,
    /// That, within the budget: what is in force.
    pub(super) granted: f64,
    pub(super) law_state: LawState,
    pub(super) cause: Cause,
    pub(super) decreases: u64,
    /// CUBIC's W_max, where the last decrease began; none before the first.
    pub(super) peak: Option<f64>,
    pub(super) decreased_at: Duration,
    pub(super) before_stall: f64,
    /// What Little's law asks for.
    pub(super) little: f64,
    /// How long a lease takes when it is short, in seconds.
    pub(super) lease_floor_s: f64,
    pub(super) occupancy: f64,
    pub(super) estimates: Estimates,
    pub(super) latency: Latency,
    pub(super) since: SinceDecision,
    at: Option<Duration>,
    decided_at: Duration,
}

/// Where the law of a stage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LawState {
    /// It was never cut, and grows as fast as it may.
    Slow,
    /// It was cut, and grows along the curve back to where that was.
    Cubic,
    /// Nothing leaves.
    Stalled,
    /// Under `Law::Seed` there is only one.
    Aimd,
}

/// What was seen since the last decision.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct SinceDecision {
    waited_s: f64,
    elapsed_s: f64,
    samples: u32,
    queued_sum: f64,
}

// === impl StageState ===

impl StageState {
    /// A stage of which nothing is known, at the least window.
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

    /// The window that is in force, in slots.
    #[must_use]
    pub fn window(&self) -> f64 {
        self.granted
    }

    /// The window that the law wants, before the slew limit and the budget, in slots.
    #[must_use]
    pub fn wanted(&self) -> f64 {
        self.wanted
    }

    /// Items over the window that was in force when they were counted. 0 … 1 in all but a stall.
    #[must_use]
    pub fn occupancy(&self) -> f64 {
        self.occupancy
    }

    /// λ: items that come, a second.
    #[must_use]
    pub fn arrival_rate(&self) -> f64 {
        self.estimates.arrival_rate
    }

    /// μ: items that go while there are any, a second; 0 before it is known.
    #[must_use]
    pub fn service_rate(&self) -> f64 {
        self.estimates.service_rate.unwrap_or_default()
    }

    /// The mean size of an item, in bytes; 0 before there was one.
    #[must_use]
    pub fn item_bytes(&self) -> f64 {
        self.estimates.item_bytes.unwrap_or_default()
    }

    /// How many items there will be in a period from now, if they come and go as they do.
    #[must_use]
    pub fn forecast_items(&self, config: &WindowConfig) -> f64 {
        let more = self.estimates.surplus() * config.period.as_secs_f64();
        (self.estimates.queued_items as f64 + more).max(0.0)
    }

    /// The time until the window is full to the upper end of its band; none if it does not fill.
    #[must_use]
    pub fn time_to_fill(&self, config: &WindowConfig) -> Option<Duration> {
        let room = config.occupancy_high * self.granted - self.estimates.queued_items as f64;
        let surplus = self.estimates.surplus();
        let seconds = room.max(0.0) / surplus;
        (surplus > 0.0).then(|| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    }

    /// What is normal for p99 of the service time, in nanoseconds; 0 before it is known.
    #[must_use]
    pub fn baseline_p99_ns(&self) -> f64 {
        self.latency.baseline_ns.unwrap_or_default()
    }

    /// W_max: where the last decrease began; 0 before the first.
    #[must_use]
    pub fn peak_window(&self) -> f64 {
        self.peak.unwrap_or_default()
    }

    /// W_L: the window that Little's law asks for.
    #[must_use]
    pub fn little_window(&self) -> f64 {
        self.little
    }

    /// Where the law is.
    #[must_use]
    pub fn law_state(&self) -> LawState {
        self.law_state
    }

    /// Why the window is what it is.
    #[must_use]
    pub fn cause(&self) -> Cause {
        self.cause
    }

    /// How often it was cut because of congestion or a stall, since the start.
    #[must_use]
    pub fn decreases(&self) -> u64 {
        self.decreases
    }

    /// Whether nothing leaves this stage or one after it.
    #[must_use]
    pub fn is_stalled(&self) -> bool {
        self.law_state == LawState::Stalled
    }

    /// How full it is for those who send to it, 0 and more: 1 if nothing leaves, and its occupancy if it was cut
    /// lately. A window that was not can't hold more than its credits, but for one message that is larger than a
    /// small window has, which is nobody's congestion.
    #[must_use]
    pub fn pressure(&self, config: &WindowConfig, now: Duration) -> f64 {
        match self.law_state {
            LawState::Stalled => 1.0,
            LawState::Aimd => self.occupancy,
            LawState::Slow | LawState::Cubic if self.was_cut(now) => self.occupancy,
            LawState::Slow | LawState::Cubic => self.occupancy.min(config.granted_share()),
        }
    }

    /// Whether a cut is so recent that what was held before it may still be there.
    pub(super) fn was_cut(&self, now: Duration) -> bool {
        let since_cut = now.saturating_sub(self.decreased_at).as_secs_f64();
        self.peak.is_some() && since_cut < CUBIC_S
    }

    /// Whether it was full since the last decision, in the mean.
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

    /// Whether a decision is due. A timer that ticks a little early is not made to wait for the next tick.
    pub(super) fn is_due(&self, config: &WindowConfig, now: Duration) -> bool {
        now.saturating_sub(self.decided_at).saturating_add(config.delta / 2) >= config.period
    }

    /// What was seen since the last decision; from here on the next one's is collected.
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

    /// The share of the time in which a sender waited, 0 … 1.
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

    /// The name used in labels and logs.
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
