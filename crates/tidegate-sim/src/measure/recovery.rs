//! When all was as before: not the first good second after a fault, but the one after which all are good.

use super::Recorder;
use super::bins::Bin;

/// The least share of good requests in a second after recovery, relative to before the fault.
const GOOD_LEAST: f64 = 0.95;
/// The largest mean latency after recovery, relative to before the fault.
const LATENCY_MOST: f64 = 2.0;

/// The state before the fault: the share of good requests, and their latency.
#[derive(Clone, Copy, Debug)]
struct Usual {
    good: f64,
    latency_us: f64,
}

impl Recorder {
    /// Seconds from the end of the last fault until all is as before the first; infinite when it never is. `None`
    /// without a fault, or without a time before or after it.
    pub(super) fn recovery_s(&self) -> Option<f64> {
        let first_s = self.scenario.faults.iter().map(|fault| fault.from_s).reduce(f64::min)?;
        let over_s = self.scenario.faults_over_s();
        let slices: Vec<_> = self.bins.slices().map(|(at_s, bins, _)| (at_s, sum(&bins))).collect();
        let before = slices.iter().filter(|(at_s, _)| {
            *at_s >= self.scenario.settle_s && at_s + self.bins.slice_s() <= first_s
        });
        let usual = Usual::of(&before.map(|(_, bin)| bin.clone()).reduce(added)?)?;
        let after: Vec<_> = slices.iter().filter(|(at_s, _)| *at_s >= over_s).collect();
        // What is due in the last second has not always an answer when all is over.
        let judged = &after[..after.len().saturating_sub(1)];
        if judged.is_empty() {
            return None;
        }
        let last_bad = judged.iter().rposition(|(_, bin)| !usual.is_like(bin));
        let normal_from = last_bad.map_or(0, |index| index + 1);
        let from = judged.get(normal_from);
        Some(from.map_or(f64::INFINITY, |(at_s, _)| (at_s - over_s).max(0.0)))
    }
}

impl Usual {
    fn of(bin: &Bin) -> Option<Self> {
        (bin.offered > 0 && bin.turned_out_good > 0).then(|| Self {
            good: bin.turned_out_good as f64 / bin.offered as f64,
            latency_us: bin.latency_sum_us as f64 / bin.turned_out_good as f64,
        })
    }

    fn is_like(self, bin: &Bin) -> bool {
        if bin.offered == 0 {
            return true;
        }
        Self::of(bin).is_some_and(|now| {
            now.good >= self.good * GOOD_LEAST && now.latency_us <= self.latency_us * LATENCY_MOST
        })
    }
}

fn sum(bins: &[Bin]) -> Bin {
    bins.iter().cloned().reduce(added).unwrap_or_default()
}

fn added(mut one: Bin, other: Bin) -> Bin {
    one.add(&other);
    one
}
