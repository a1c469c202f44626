use super::draws::Draws;
use std::time::Duration;

/// How many records a sender has to send, a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    Steady {
        per_s: f64,
    },
    /// Half of the time many, half of the time few.
    Square {
        high_per_s: f64,
        low_per_s: f64,
        period_s: f64,
    },
    /// Rises from none and falls back at once.
    Sawtooth {
        peak_per_s: f64,
        period_s: f64,
    },
    /// Bursts and pauses, each of a random length with this mean.
    Bursts {
        high_per_s: f64,
        low_per_s: f64,
        mean_s: f64,
    },
}

/// A load as it comes.
#[derive(Debug)]
pub struct Arrivals {
    load: Load,
    draws: Draws,
    in_burst: bool,
    turns_at_s: f64,
}

impl Load {
    /// The part of one of so many that share it.
    pub fn divided(self, count: f64) -> Self {
        match self {
            Self::Steady { per_s } => Self::Steady { per_s: per_s / count },
            Self::Square { high_per_s, low_per_s, period_s } => Self::Square {
                high_per_s: high_per_s / count,
                low_per_s: low_per_s / count,
                period_s,
            },
            Self::Sawtooth { peak_per_s, period_s } => {
                Self::Sawtooth { peak_per_s: peak_per_s / count, period_s }
            }
            Self::Bursts { high_per_s, low_per_s, mean_s } => Self::Bursts {
                high_per_s: high_per_s / count,
                low_per_s: low_per_s / count,
                mean_s,
            },
        }
    }
}

impl Arrivals {
    pub fn new(load: Load, seed: u64) -> Self {
        Self { load, draws: Draws::new(seed), in_burst: false, turns_at_s: 0.0 }
    }

    /// Records a second at this time.
    pub fn rate(&mut self, at: Duration) -> f64 {
        let at_s = at.as_secs_f64();
        match self.load {
            Load::Steady { per_s } => per_s,
            Load::Square { high_per_s, low_per_s, period_s } => {
                if (at_s / period_s).fract() < 0.5 {
                    high_per_s
                } else {
                    low_per_s
                }
            }
            Load::Sawtooth { peak_per_s, period_s } => peak_per_s * (at_s / period_s).fract(),
            Load::Bursts { high_per_s, low_per_s, mean_s } => {
                while self.turns_at_s <= at_s {
                    self.turns_at_s += self.draws.exponential(mean_s).max(0.01);
                    self.in_burst = !self.in_burst;
                }
                if self.in_burst { high_per_s } else { low_per_s }
            }
        }
    }
}
