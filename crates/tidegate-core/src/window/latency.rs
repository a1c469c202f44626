use super::estimates::toward;
use super::{LATENCY_SAMPLES_MIN, StageSample};
use std::time::Duration;

/// Capacity of the ring of measurements: more than a period has. A power of two, so that the count may wrap.
const RECENT: usize = 16;

/// Maximum rise of the baseline per second, relative to itself.
const DRIFT_PER_S: f64 = 0.01;

/// Time constant of a falling baseline. It falls about as fast as it rises when p99 varies by a third: a faster
/// fall would leave it at the random minimum.
const FALL_MEMORY_S: f64 = 30.0;

/// Minimum number of measurements of a median, including old ones: a single p99 may be off by half.
const MEDIAN_OF_MIN: usize = 5;

/// Maximum time between judgements that counts for the rise of the baseline.
const DRIFT_S_MAX: f64 = 10.0;

/// p99 of the service time, and its baseline.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Latency {
    recent: [u64; RECENT],
    /// Measurements in all, and since the last judgement.
    count: usize,
    fresh: usize,
    judged_at: Duration,
    pub baseline_ns: Option<f64>,
}

// === impl Latency ===

impl Latency {
    pub(super) fn observe(&mut self, sample: &StageSample) {
        if sample.latency_samples >= LATENCY_SAMPLES_MIN && sample.p99_ns > 0 {
            self.recent[self.count % RECENT] = sample.p99_ns;
            self.count = self.count.wrapping_add(1);
            self.fresh += 1;
        }
    }

    /// Median p99 since the last call, if any: a single slow measurement is not a slow stage.
    pub(super) fn take(&mut self) -> Option<f64> {
        let fresh = std::mem::take(&mut self.fresh);
        let of = fresh.max(MEDIAN_OF_MIN).min(self.count).min(RECENT);
        let mut last: [u64; RECENT] =
            std::array::from_fn(|back| self.recent[self.count.wrapping_sub(back + 1) % RECENT]);
        last[..of].sort_unstable();
        let median = last[..of].get(of / 2).map(|p99| *p99 as f64);
        median.filter(|_| fresh > 0)
    }

    /// Ratio of a p99 to its baseline; 1 without a baseline.
    pub(super) fn ratio(&self, p99_ns: f64) -> f64 {
        self.baseline_ns.map_or(1.0, |baseline| p99_ns / baseline)
    }

    /// Moves the baseline: down within seconds, up by at most 1 % per second, and not at all while frozen.
    pub(super) fn settle(&mut self, p99_ns: f64, now: Duration, frozen: bool) {
        let dt = now.saturating_sub(self.judged_at).as_secs_f64().min(DRIFT_S_MAX);
        self.judged_at = now;
        let Some(baseline) = self.baseline_ns else {
            self.baseline_ns = Some(p99_ns);
            return;
        };
        if frozen {
            return;
        }
        let next = if p99_ns < baseline {
            toward(baseline, p99_ns, dt, FALL_MEMORY_S)
        } else {
            p99_ns.min(baseline * (1.0 + DRIFT_PER_S * dt))
        };
        self.baseline_ns = Some(next);
    }

    /// Plain running mean of `Law::Seed`: an eighth of the way per period.
    pub(super) fn settle_plainly(&mut self, p99_ns: f64) {
        let baseline = self.baseline_ns.unwrap_or(p99_ns);
        self.baseline_ns = Some(baseline + (p99_ns - baseline) / 8.0);
    }
}
