use super::LimitScenario;
use super::gateway::Tally;
use super::server::nanos;

/// Figures of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitFigures {
    /// Responses within the deadline, per second.
    pub goodput_per_s: f64,
    /// Requests served, of all that were offered, from the start.
    pub served: f64,
    /// Requests that waited for the limit, of all that were offered.
    pub delayed: f64,
    /// The 99th percentile of latencies at the server, in milliseconds.
    pub p99_ms: f64,
    /// Mean limit of all gateways together.
    pub limit: f64,
    /// Least goodput of a gateway over the greatest, 0 … 1.
    pub fairness: f64,
    /// Goodput in each slice of the run, per second.
    slices: Vec<f64>,
    slice_s: f64,
}

/// Slices of a run by which settling is measured, and the least length of one.
const SLICES: f64 = 120.0;
const SLICE_MIN_S: f64 = 0.5;

/// Slices that must together reach the share of the oracle's goodput.
const SETTLED_SLICES: usize = 4;
const SETTLED_SHARE: f64 = 0.9;

// === impl LimitFigures ===

impl LimitFigures {
    pub(super) fn of<'a>(
        scenario: &LimitScenario,
        tallies: impl Iterator<Item = &'a Tally> + Clone,
    ) -> Self {
        let slice_s = (scenario.duration_s / SLICES).max(SLICE_MIN_S);
        let mut slices = vec![0.0; (scenario.duration_s / slice_s) as usize + 1];
        let (from, deadline) = (nanos(scenario.judged_from_s), nanos(scenario.deadline_s));
        let (mut latencies, mut goodputs, mut limits) = (Vec::new(), Vec::new(), (0.0, 0.0));
        let (mut offered, mut unserved, mut delayed) = (0.0, 0.0, 0.0);
        for tally in tallies {
            let mut good = 0.0;
            for response in &tally.responses {
                let in_time = response.at - response.arrived <= deadline;
                if in_time {
                    slices[(response.at as f64 / 1e9 / slice_s) as usize] += 1.0 / slice_s;
                }
                if response.at >= from {
                    latencies.push(response.latency);
                    good += f64::from(u8::from(in_time));
                }
            }
            goodputs.push(good);
            let judged = tally.limits.iter().filter(|(at, _)| *at >= from);
            let sum = judged.fold((0.0, 0.0), |(n, sum), (_, it)| (n + 1.0, sum + f64::from(*it)));
            limits = (sum.0, limits.1 + sum.1);
            offered += tally.offered;
            unserved += tally.refused + tally.failed;
            delayed += tally.delayed;
        }
        latencies.sort_unstable();
        let p99 = latencies.get(latencies.len() * 99 / 100).copied().unwrap_or_default();
        let least = goodputs.iter().copied().fold(f64::INFINITY, f64::min);
        let most = goodputs.iter().copied().fold(0.0, f64::max);
        Self {
            goodput_per_s: goodputs.iter().sum::<f64>()
                / (scenario.duration_s - scenario.judged_from_s),
            served: 1.0 - unserved / f64::max(offered, 1.0),
            delayed: delayed / f64::max(offered, 1.0),
            p99_ms: p99 as f64 / 1e6,
            limit: limits.1 / f64::max(limits.0, 1.0),
            fairness: if most > 0.0 { least / most } else { 0.0 },
            slices,
            slice_s,
        }
    }

    /// Seconds after the scenario's step until the goodput was 90 % of the oracle's mean after it; infinite if
    /// it never was, `None` without a step.
    #[must_use]
    pub fn settled_s(&self, oracle: &Self, scenario: &LimitScenario) -> Option<f64> {
        let first = (scenario.step_s? / self.slice_s) as usize + 1;
        // The last slice may be shorter than the others.
        let after = oracle.slices.get(first..oracle.slices.len() - 1)?;
        let target = SETTLED_SHARE * after.iter().sum::<f64>() / after.len() as f64;
        let mean = |slices: &[f64]| slices.iter().sum::<f64>() / slices.len() as f64;
        let ours = &self.slices[first..self.slices.len() - 1];
        let settled = ours.windows(SETTLED_SLICES).position(|slices| mean(slices) >= target);
        Some(settled.map_or(f64::INFINITY, |slices| (slices + 1) as f64 * self.slice_s))
    }
}
