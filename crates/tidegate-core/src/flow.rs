//! Smoothed rates of events and times of services.
//!
//! Uses nothing of this crate, and reads no clock.

use std::time::Duration;

/// Time constant of the smoothing: long enough to smooth a burst of completions, short enough to follow a change
/// of load within the few seconds that a client waits.
const MEMORY_S: f64 = 2.0;

/// Completions that the mean covers at least, however slow they are: a mean of 8 exponential times is within
/// 1/√8 = 35 % of theirs.
const MEMORY_ENDS: f64 = 8.0;

/// Mean time of a request in its slot, over the last 2 s or the last 8 requests, whichever is longer. Time without
/// requests does not count: a server that has little to do is not slow.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::routing::ServiceEstimator;
///
/// let mut estimator = ServiceEstimator::default();
/// assert_eq!(estimator.service(), None);
/// // Two requests have ended, after 300 ms in all.
/// estimator.observe(Duration::from_secs(1), 2, Duration::from_millis(300));
/// assert_eq!(estimator.service(), Some(Duration::from_millis(150)));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ServiceEstimator {
    ended: u64,
    served_s: f64,
    last_at_s: f64,
    mean_s: Option<f64>,
}

/// Events a second, exponentially smoothed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rate {
    total: u64,
    per_s: f64,
}

// === impl ServiceEstimator ===

impl ServiceEstimator {
    /// Records the totals at `now`: requests that ended, and the time that they were in their slots.
    pub fn observe(&mut self, now: Duration, ended: u64, served: Duration) {
        let (now_s, served_s) = (now.as_secs_f64(), served.as_secs_f64());
        let count = ended.saturating_sub(self.ended);
        if count == 0 {
            return;
        }
        let sample_s = (served_s - self.served_s).max(0.0) / count as f64;
        let by_time = weight(now_s - self.last_at_s);
        let by_count = 1.0 - decay(count as f64 / MEMORY_ENDS);
        // The first few are a plain mean.
        let at_first = count as f64 / ended as f64;
        let mean_s = match self.mean_s {
            Some(mean_s) => mean_s + by_time.min(by_count).max(at_first) * (sample_s - mean_s),
            None => sample_s,
        };
        *self = Self { ended, served_s, last_at_s: now_s, mean_s: Some(mean_s) };
    }

    /// Returns the mean; `None` before a request has ended.
    #[must_use]
    pub fn service(&self) -> Option<Duration> {
        self.mean_s.map(Duration::from_secs_f64)
    }
}

// === impl Rate ===

impl Rate {
    /// Records the total so far, `elapsed_s` after the last observation.
    pub fn observe(&mut self, elapsed_s: f64, total: u64, first: bool) {
        let count = total.saturating_sub(self.total);
        self.total = total;
        if !first {
            self.per_s += weight(elapsed_s) * (count as f64 / elapsed_s - self.per_s);
        }
    }

    /// Events per second.
    pub fn per_s(&self) -> f64 {
        self.per_s
    }
}

/// Weight of a sample that covers `stretch_s` seconds.
fn weight(stretch_s: f64) -> f64 {
    1.0 - decay(stretch_s / MEMORY_S)
}

/// e⁻ˣ for x ≥ 0, by operations that IEEE 754 defines to the last bit. The platform's `exp` differs in the last
/// bit between platforms, which would make retry advice, and every simulated report, differ too.
fn decay(x: f64) -> f64 {
    // e⁻ˣ = 2⁻ⁿ·e⁻ʳ with 0 ≤ r < ln 2. Below the smallest normal number the result is zero.
    let x = x.max(0.0);
    let halvings = (x / std::f64::consts::LN_2).floor();
    if halvings >= 1022.0 {
        return 0.0;
    }
    let rest = x - halvings * std::f64::consts::LN_2;
    // 1 − r·(1 − r/2·(1 − r/3·…)): the 18th term is below 1e-18.
    let series = (1..=18).rev().fold(1.0, |sum, k| 1.0 - rest / f64::from(k) * sum);
    series * f64::from_bits((1023 - halvings as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "to compare with")]
    fn what_is_left_of_a_memory_is_an_exponential() {
        for step in 0..200_000_u32 {
            let x = f64::from(step) * f64::from(step) * 1.75e-8;
            let (found, expected) = (decay(x), (-x).exp());
            assert!((found - expected).abs() <= 1e-12 * expected, "{x}: {found}, not {expected}");
        }
        assert_eq!((decay(0.0), decay(-1.0), decay(1e9)), (1.0, 1.0, 0.0));
        assert_eq!(decay(f64::INFINITY), 0.0);
    }

    /// Bits that were computed once: on any platform they are these.
    #[test]
    fn every_platform_has_the_same_bits() {
        let bits = [0.1, 0.5, 1.0, 10.0].map(|x| decay(x).to_bits());
        let expected: [u64; 4] = [
            0x3fec_f46d_99d5_2b3a,
            0x3fe3_68b2_fc6f_960a,
            0x3fd7_8b56_362c_ef38,
            0x3f07_cd79_b564_7c97,
        ];
        assert_eq!(bits, expected);
    }
}
