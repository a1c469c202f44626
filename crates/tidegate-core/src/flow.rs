//! Smoothed rates of events and of freed slots, from which a retry time is computed.
//!
//! Uses nothing of this crate, and reads no clock.

/// Time constant of the smoothing: long enough to smooth a burst of completions, short enough to follow a change
/// of load within the few seconds that a client waits.
const MEMORY_S: f64 = 2.0;

/// Rate at which slots become free, stored as the interval between two of them. An interval works for one
/// completion in 10 s as well as for 10,000 in 1 s.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FreeRate {
    total: u64,
    last_at_s: f64,
    interval_s: Option<f64>,
    /// Nothing was in flight and nothing ended at the last observation.
    idle: bool,
}

/// Events a second, exponentially smoothed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rate {
    total: u64,
    per_s: f64,
}

// === impl FreeRate ===

impl FreeRate {
    /// Starts from the total so far, with no interval known yet.
    pub fn starting(now_s: f64, total: u64) -> Self {
        Self { total, last_at_s: now_s, ..Self::default() }
    }

    /// Records the total freed by now, and the number still in flight.
    pub fn observe(&mut self, now_s: f64, total: u64, in_flight: u64) {
        let count = total.saturating_sub(self.total);
        self.idle = count == 0 && in_flight == 0;
        if self.idle {
            self.last_at_s = now_s;
        }
        if count == 0 {
            return;
        }
        let gap_s = now_s - self.last_at_s;
        let sample_s = gap_s / count as f64;
        let interval_s = match self.interval_s {
            Some(old) => old + weight(gap_s) * (sample_s - old),
            None => sample_s,
        };
        *self = Self { total, last_at_s: now_s, interval_s: Some(interval_s), idle: false };
    }

    /// Slots freed per second. A silence longer than the usual interval lowers the rate.
    pub fn per_s(&self, now_s: f64) -> f64 {
        let silence_s = now_s - self.last_at_s;
        self.interval_s.map_or(0.0, |interval_s| 1.0 / interval_s.max(silence_s).max(1e-9))
    }

    /// Time of the last freed slot, or of the last observation without anything in flight.
    pub fn last_at_s(&self) -> f64 {
        self.last_at_s
    }

    /// True if nothing was in flight and nothing ended at the last observation.
    pub fn is_idle(&self) -> bool {
        self.idle
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
