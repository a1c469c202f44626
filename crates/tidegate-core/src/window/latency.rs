use super::estimates::toward;
use super::{LATENCY_SAMPLES_MIN, StageSample};
use std::time::Duration;

/// More than a period has measurements; older ones are overwritten. A power of two, so that a count may wrap.
const RECENT: usize = 16;

/// The most that the baseline rises, of itself a second.
const DRIFT_PER_S: f64 = 0.01;

/// How long the baseline remembers what was slower than now. It falls about as fast as it rises when p99
/// varies by a third: a faster fall would leave it at the least that was ever measured by chance.
const FALL_MEMORY_S: f64 = 30.0;

/// A median is at least of this many, old ones if need be: one measurement of p99 alone may be off by half.
const MEDIAN_OF_MIN: usize = 5;

/// After a longer time without a judgement the baseline still rises by no more than this much time allows.
const DRIFT_S_MAX: f64 = 10.0;

/// p99 of the service time, and what is normal for it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Latency {
    recent: [u64; RECENT],
    /// How many there were in all, and since the last judgement.
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

    /// The median p99 since the last call, if there was one: a single slow measurement is not a slow stage.
    pub(super) fn take(&mut self) -> Option<f64> {
        let fresh = std::mem::take(&mut self.fresh);
        let of = fresh.max(MEDIAN_OF_MIN).min(self.count).min(RECENT);
        let mut last: [u64; RECENT] =
            std::array::from_fn(|back| self.recent[self.count.wrapping_sub(back + 1) % RECENT]);
        last[..of].sort_unstable();
        let median = last[..of].get(of / 2).map(|p99| *p99 as f64);
        median.filter(|_| fresh > 0)
    }

    /// How many times its baseline a p99 is; 1 before there is a baseline.
    pub(super) fn ratio(&self, p99_ns: f64) -> f64 {
        self.baseline_ns.map_or(1.0, |baseline| p99_ns / baseline)
    }

    /// Moves the baseline: down within seconds, up by at most 1 % a second, and not at all while frozen.
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

    /// The plain running mean of `Law::Seed`: an eighth of the way a period.
    pub(super) fn settle_plainly(&mut self, p99_ns: f64) {
        let baseline = self.baseline_ns.unwrap_or(p99_ns);
        self.baseline_ns = Some(baseline + (p99_ns - baseline) / 8.0);
    }
}
