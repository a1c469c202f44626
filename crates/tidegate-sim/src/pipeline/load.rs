use crate::random::Draw;
use std::time::Duration;
use tidegate_core::rng::Rng;

/// The items offered over time. The sender keeps items that are not accepted yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// Always as many.
    Steady {
        /// Items a second.
        per_s: f64,
    },
    /// As many until a moment, and then as many others.
    Step {
        /// Items a second until then.
        before_per_s: f64,
        /// Items a second from then on.
        after_per_s: f64,
        /// The moment.
        at: Duration,
    },
    /// Half of the time many, half of the time few.
    Square {
        /// Items a second in the first half.
        high_per_s: f64,
        /// Items a second in the second half.
        low_per_s: f64,
        /// Both halves.
        period: Duration,
    },
    /// Rises from none and falls back at once.
    Sawtooth {
        /// Items a second at the top.
        peak_per_s: f64,
        /// From one fall to the next.
        period: Duration,
    },
    /// Bursts and pauses of random length.
    Bursts {
        /// Items a second in a burst.
        high_per_s: f64,
        /// Items a second in a pause.
        low_per_s: f64,
        /// The mean length of either, which is exponentially distributed.
        mean: Duration,
    },
}

/// A load as it comes, millisecond by millisecond.
#[derive(Debug)]
pub(super) struct Arrivals {
    load: Load,
    rng: Rng,
    in_burst: bool,
    turns_at_s: f64,
    part: f64,
}

// === impl Load ===

impl Load {
    /// After this long it is the same again, or about; 0 if it is always.
    #[must_use]
    pub fn period(&self) -> Duration {
        match *self {
            Self::Steady { .. } | Self::Step { .. } => Duration::ZERO,
            Self::Square { period, .. } | Self::Sawtooth { period, .. } => period,
            Self::Bursts { mean, .. } => mean * 2,
        }
    }
}

// === impl Arrivals ===

impl Arrivals {
    pub(super) fn new(load: Load, rng: Rng) -> Self {
        Self { load, rng, in_burst: false, turns_at_s: 0.0, part: 0.0 }
    }

    /// Items offered in this stretch of time. They come in groups: the variance of a stretch is the square of its
    /// mean.
    pub(super) fn offered(&mut self, now: Duration, dt: Duration) -> u64 {
        let mean = self.rate(now.as_secs_f64()) * dt.as_secs_f64();
        self.part += self.rng.exponential(mean);
        let whole = self.part as u64;
        self.part -= whole as f64;
        whole
    }

    fn rate(&mut self, now_s: f64) -> f64 {
        match self.load {
            Load::Steady { per_s } => per_s,
            Load::Step { before_per_s, after_per_s, at } => {
                if now_s < at.as_secs_f64() {
                    before_per_s
                } else {
                    after_per_s
                }
            }
            Load::Square { high_per_s, low_per_s, period } => {
                if phase(now_s, period) < 0.5 {
                    high_per_s
                } else {
                    low_per_s
                }
            }
            Load::Sawtooth { peak_per_s, period } => peak_per_s * phase(now_s, period),
            Load::Bursts { high_per_s, low_per_s, mean } => {
                while self.turns_at_s <= now_s {
                    self.turns_at_s += self.rng.exponential(mean.as_secs_f64()).max(0.001);
                    self.in_burst = !self.in_burst;
                }
                if self.in_burst { high_per_s } else { low_per_s }
            }
        }
    }
}

/// Returns the position of a time in its period, 0 … 1.
fn phase(now_s: f64, period: Duration) -> f64 {
    let periods = now_s / period.as_secs_f64();
    periods - periods.floor()
}
