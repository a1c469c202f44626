use super::logarithm::{exp, ln};
use super::state::LimitState;
use super::step::{BINDING, is_overload, is_slow};
use super::{LatencySample, LimitConfig, UpstreamOutcome};

/// Measurements of one round: a stretch of time under one level.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Observation {
    /// True if the lower level of an experiment was in force.
    pub is_probe: bool,
    /// Latencies of the successes, after the level settled.
    pub latency: LatencySample,
    /// Share of the time at the limit or with somebody waiting, 0 … 1.
    pub busy: f64,
    /// Mean number in flight.
    pub concurrency: f64,
    /// Most in flight at once.
    pub peak: u32,
    /// Ends of requests that began in the round, without ignored ones.
    pub ends: u32,
    /// Ends that are failures: refusals, timeouts and broken connections.
    pub failures: u32,
    /// Failures that are refusals by the upstream.
    pub refusals: u32,
    /// Mean number in flight when a refused request began.
    pub refused_at: f64,
}

/// Counts of a round under way: constant size and constant time for each event.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Round {
    from_s: f64,
    /// Latencies count from here: before it, responses are those of another level.
    settled_s: f64,
    /// True if only latencies of requests that began in the round count.
    only_own: bool,
    counted_until_s: f64,
    in_flight_s: f64,
    busy_s: f64,
    refused_at: f64,
    counts: Observation,
}

/// Latency that nobody notices, added to each: half of the resolution of timers. An upstream that is as fast is
/// not worth a queue in front of it, which costs the gateway more than requests would wait behind each other. At
/// full slots the elasticity then seems to be d/(R + d), so that up to R = d·(1/e* − 1), 1.2 ms, is no overload.
pub(super) const UNNOTICED_S: f64 = 0.0005;
/// Latencies that a round lasts: responses of its own requests then outnumber those from before it by four.
const ROUND_LATENCIES: f64 = 4.0;
/// Latencies until a changed level is settled: one to drain what was sent before, one for what is sent after.
const SETTLE_LATENCIES: f64 = 2.0;
/// Least latencies of a round: their mean is within 26 % for exponential service times. Half as many after a
/// start or calm, when the limit has to follow demand at once.
const SAMPLES_MIN: f64 = 24.0;
/// Share of throughput that probing may cost. The limit stays as many rounds longer than its lower level as
/// that is a deeper cut: 25 % below for one round of nine.
const PROBE_COST: f64 = 0.03;
/// Most rounds at the limit for one at the lower level.
const DWELL_MAX: f64 = 8.0;
/// Shortest round.
const ROUND_MIN_S: f64 = 0.01;
/// Failures that end a round early, if they are more than half of its ends.
const FAILURES_EARLY: u32 = 8;

// === impl Round ===

impl Round {
    /// Begins a round. `is_new_level`: the level changed; `after_cut`: it was cut without an experiment.
    pub(super) fn begin(
        now_s: f64,
        in_flight: u32,
        state: &LimitState,
        is_new_level: bool,
        after_cut: bool,
    ) -> Self {
        let settle_s = if is_new_level { SETTLE_LATENCIES * state.latency_s } else { 0.0 };
        let counts =
            Observation { is_probe: state.is_probing, peak: in_flight, ..Observation::default() };
        Self {
            from_s: now_s,
            settled_s: now_s + settle_s,
            only_own: after_cut,
            counted_until_s: now_s,
            counts,
            ..Self::default()
        }
    }

    /// Accounts for the time since the last event.
    pub(super) fn advance(&mut self, now_s: f64, in_flight: u32, is_busy: bool) {
        let elapsed_s = (now_s - self.counted_until_s).max(0.0);
        self.in_flight_s += elapsed_s * f64::from(in_flight);
        if is_busy {
            self.busy_s += elapsed_s;
        }
        self.counted_until_s = self.counted_until_s.max(now_s);
    }

    pub(super) fn on_start(&mut self, in_flight: u32) {
        self.counts.peak = self.counts.peak.max(in_flight);
    }

    pub(super) fn on_end(
        &mut self,
        now_s: f64,
        started_s: f64,
        in_flight_at_start: u32,
        outcome: UpstreamOutcome,
    ) {
        let is_own = started_s >= self.from_s;
        match outcome {
            UpstreamOutcome::Abandoned | UpstreamOutcome::Ignored => return,
            UpstreamOutcome::Success => {
                if now_s >= self.settled_s && (is_own || !self.only_own) {
                    self.counts.latency.add(ln((now_s - started_s).max(0.0) + UNNOTICED_S));
                    self.counts.ends += 1;
                }
                return;
            }
            _ if !is_own => return,
            UpstreamOutcome::Refused => {
                self.counts.refusals += 1;
                self.refused_at += f64::from(in_flight_at_start);
            }
            UpstreamOutcome::TimedOut | UpstreamOutcome::ConnectFailed => {}
        }
        self.counts.failures += 1;
        self.counts.ends += 1;
    }

    /// Number of ends so far, without ignored ones.
    pub(super) const fn ends(&self) -> u32 {
        self.counts.ends
    }

    /// Number of failures so far.
    pub(super) const fn failures(&self) -> u32 {
        self.counts.failures
    }

    /// Returns `true` if the round has what a decision needs.
    pub(super) fn is_complete(
        &self,
        now_s: f64,
        config: &LimitConfig,
        state: &LimitState,
        own_delay_s: f64,
    ) -> bool {
        let Observation { failures, ends, .. } = self.counts;
        if failures >= FAILURES_EARLY && 2 * failures > ends {
            return true;
        }
        let elapsed_s = now_s - self.from_s;
        let latency = self.latency(state, own_delay_s);
        let binding = self.busy_s >= BINDING * elapsed_s;
        // A limit that followed demand and is slow needs its first experiment at once: the upstream may collapse.
        let is_urgent = is_overload(config, state, &latency)
            || (binding && state.is_fresh && is_slow(config, state, &latency));
        if elapsed_s > state.latency_s && is_urgent {
            return true;
        }
        let typical_s = if latency.count() >= 8.0 { exp(latency.mean()) } else { state.latency_s };
        let mut samples_min = if state.is_fresh { SAMPLES_MIN / 2.0 } else { SAMPLES_MIN };
        if !binding {
            // The first responses to a burst are those of its shortest requests: they must not end a round.
            samples_min = samples_min.max(2.0 * f64::from(self.counts.peak));
        }
        let full_s = (ROUND_LATENCIES * typical_s * dwell(state)).max(ROUND_MIN_S)
            + (self.settled_s - self.from_s);
        let is_long = elapsed_s >= full_s;
        // A quiet upstream has few samples: then the round waits for them four times as long, and a second.
        let is_late = elapsed_s >= 4.0 * full_s + 1.0;
        is_long && ends > 0 && (latency.count() >= samples_min || is_late)
    }

    pub(super) fn observation(
        &self,
        now_s: f64,
        state: &LimitState,
        own_delay_s: f64,
    ) -> Observation {
        let elapsed_s = (now_s - self.from_s).max(1e-9);
        let refusals = f64::from(self.counts.refusals.max(1));
        Observation {
            latency: self.latency(state, own_delay_s),
            busy: self.busy_s / elapsed_s,
            concurrency: self.in_flight_s / elapsed_s,
            refused_at: self.refused_at / refusals,
            ..self.counts
        }
    }

    fn latency(&self, state: &LimitState, own_delay_s: f64) -> LatencySample {
        match state.baseline {
            Some(baseline) if own_delay_s > 0.0 => {
                self.counts.latency.less(own_delay_s, baseline.mean)
            }
            _ => self.counts.latency,
        }
    }
}

/// Rounds at the limit for one at the lower level.
fn dwell(state: &LimitState) -> f64 {
    if state.is_probing || state.gap() > state.least_stride() {
        return 1.0;
    }
    let depth = f64::from(state.gap()) / f64::from(state.limit);
    (depth / PROBE_COST).clamp(1.0, DWELL_MAX)
}
