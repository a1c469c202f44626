use crate::random::{Draw, exp, ln};
use tidegate_core::rng::Rng;

/// Distribution of the work of a request, in seconds alone on the server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ServiceTime {
    /// Always the same.
    Fixed(f64),
    /// Exponential with this mean.
    Exponential(f64),
    /// Log-normal with this mean and coefficient of variation.
    LogNormal {
        /// The mean, in seconds.
        mean_s: f64,
        /// Standard deviation over mean.
        variation: f64,
    },
    /// One value for most requests, another for a share of them.
    Bimodal {
        /// The work of most requests, in seconds.
        fast_s: f64,
        /// The work of the others, in seconds.
        slow_s: f64,
        /// The share of those, 0 … 1.
        slow_share: f64,
    },
}

// === impl ServiceTime ===

impl ServiceTime {
    /// Mean work, in seconds.
    #[must_use]
    pub fn mean_s(&self) -> f64 {
        match *self {
            Self::Fixed(s) | Self::Exponential(s) => s,
            Self::LogNormal { mean_s, .. } => mean_s,
            Self::Bimodal { fast_s, slow_s, slow_share } => {
                fast_s * (1.0 - slow_share) + slow_s * slow_share
            }
        }
    }

    pub(super) fn draw(&self, rng: &mut Rng) -> f64 {
        match *self {
            Self::Fixed(s) => s,
            Self::Exponential(mean_s) => rng.exponential(mean_s),
            Self::LogNormal { mean_s, variation } => {
                let variance = ln(1.0 + variation * variation);
                mean_s * exp(variance.sqrt() * normal(rng) - variance / 2.0)
            }
            Self::Bimodal { fast_s, slow_s, slow_share } => {
                let base_s = if rng.uniform() <= slow_share { slow_s } else { fast_s };
                base_s * (0.8 + 0.4 * rng.uniform())
            }
        }
    }
}

/// Draws a standard normal number, as the sum of twelve uniform ones: within ±6, and the same on every platform.
fn normal(rng: &mut Rng) -> f64 {
    (0..12).map(|_| rng.uniform()).sum::<f64>() - 6.0
}
