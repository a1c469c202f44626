use super::logarithm::{exp, ln};
use super::state::{Baseline, CAUTION_ROUNDS, Direction};
use super::{LatencySample, LimitConfig, LimitMove, LimitState, Observation};

/// Share of the time at the limit from which it is binding: below it, the level is not what was measured.
pub(super) const BINDING: f64 = 0.8;

/// Latency that counts as the baseline's: 10 %, the standard error of 100 exponential latencies.
const FLAT: f64 = 1.1;

/// Concurrency over the baseline's from which a flat latency is proof: over a shorter way it is flat by chance.
const FAR: f64 = 1.5;

/// Standard errors that raise the limit: five of six raises are right, and a wrong one is undone by the next
/// round.
const RAISE_ERRORS: f64 = 1.0;

/// Standard errors that lower it. More than for a raise: below the knee throughput is lost, above it only
/// latency.
const LOWER_ERRORS: f64 = 1.5;

/// Share of older rounds that an experiment keeps: it remembers four rounds, 1/(1 − 0.75).
const KEEP: f64 = 0.75;

/// Probes after which a wide experiment is decided by its sign: it costs more than a wrong step.
const WIDE_PROBES: u32 = 2;

/// Share of failures, above the floor, that counts as overload.
const FAILURES: f64 = 0.1;

/// Least ends of requests by which failures and latencies are judged.
const ENDS_MIN: u32 = 4;
/// Least latencies that prove an overload.
const OVERLOAD_SAMPLES: f64 = 16.0;

/// Control law of a limit: the state after a round.
///
/// In order: failures and refusals cut the limit; a limit that does not bind follows twice the peak in flight; a
/// latency far above its baseline halves it; a flat latency raises it; else an experiment decides. By Little's
/// law throughput is limit over latency, so its elasticity is e = 1 − Δln R/Δln L: the limit is raised while e
/// is above the goal's, and lowered while it is below.
#[must_use]
pub fn step(config: &LimitConfig, state: LimitState, round: &Observation) -> LimitState {
    let mut next = state;
    let is_cut = judge_failures(&mut next, round);
    if round.latency.count() < f64::from(ENDS_MIN) {
        return next;
    }
    let latency_s = exp(round.latency.mean());
    if next.latency_s == 0.0 {
        // The first responses are those of the shortest requests: they give the time scale and nothing else.
        next.latency_s = latency_s;
        return next;
    }
    next.latency_s += 0.5 * (latency_s - next.latency_s);
    if is_cut {
        return next;
    }
    let binding = round.busy >= BINDING;
    let seen = if binding { next.record(round, KEEP) } else { round.latency };
    let baseline = next.learn_baseline(&seen, round.concurrency);
    let mean = seen.mean();
    if !binding {
        follow_demand(config, &mut next, round, baseline, mean);
    } else if is_overload(config, &next, &round.latency) {
        next.cut(next.limit / 2, LimitMove::Overload);
    } else {
        decide(config, &mut next, round, baseline, mean);
    }
    next
}

/// Cuts the limit for failures and refusals; returns `true` if it did.
fn judge_failures(next: &mut LimitState, round: &Observation) -> bool {
    if round.ends < ENDS_MIN {
        return false;
    }
    let share = f64::from(round.failures) / f64::from(round.ends);
    if share <= next.failure_floor + FAILURES {
        next.failures_before = None;
        next.failure_floor = next.failure_floor.min(share.max(0.9 * next.failure_floor));
        return false;
    }
    let unchanged = |before: f64| share < 0.9 && share > 0.8 * before;
    if next.failures_before.is_some_and(unchanged) {
        // A lower limit did not help: these failures are not overload.
        next.failure_floor = share;
        next.failures_before = None;
        return false;
    }
    if 2 * round.refusals > round.failures {
        next.failures_before = None;
        next.cut((round.refused_at as u32).saturating_sub(1), LimitMove::Refused);
        next.stride = next.least_stride();
        next.restart_experiment();
    } else {
        next.failures_before = Some(share);
        next.cut(next.limit / 2, LimitMove::Failures);
    }
    true
}

/// A limit that does not bind: twice the peak in flight while latency is flat; never lower. After a cut it stays,
/// but for the least step when a peak reaches it: a load about the capacity binds it in one round and not in the
/// next.
fn follow_demand(
    config: &LimitConfig,
    next: &mut LimitState,
    round: &Observation,
    baseline: Baseline,
    mean: f64,
) {
    next.caution = next.caution.saturating_sub(1);
    let is_cautious = next.caution > 0;
    next.is_fresh = !is_cautious;
    next.stride = if is_cautious { next.least_stride() } else { next.limit };
    next.direction = Direction::Up;
    let wanted = match is_cautious {
        _ if !baseline.is_within(mean, FLAT) => 0,
        false => round.peak.saturating_mul(2),
        true if round.peak >= next.limit => next.limit.saturating_add(next.least_stride()),
        true => 0,
    };
    let wanted = wanted.min(config.max.max(1));
    if wanted > next.limit {
        next.limit = wanted;
        next.last_move = LimitMove::Calm;
    }
    next.restart_experiment();
}

/// Returns `true` if latencies prove an overload, with certainty: the bound of elasticity is below the goal's
/// square. A climb that overshoots is seen at the goal itself. Between them, at e*^1.5, while the limit follows
/// demand: a slower network is no overload, and the limit may be far above the capacity.
pub(super) fn is_overload(
    config: &LimitConfig,
    state: &LimitState,
    latency: &LatencySample,
) -> bool {
    let goal = config.goal.elasticity();
    let bound_min = match state.last_move {
        LimitMove::Calm => goal * goal.sqrt(),
        _ if state.is_fresh => goal,
        _ => goal * goal,
    };
    is_below(bound_min, state, latency)
}

/// Returns `true` if latencies are too long for a raise without proof, with certainty.
pub(super) fn is_slow(config: &LimitConfig, state: &LimitState, latency: &LatencySample) -> bool {
    is_below(config.goal.elasticity(), state, latency)
}

/// Returns `true` if the bound of elasticity is below a value, with certainty.
fn is_below(bound_min: f64, state: &LimitState, latency: &LatencySample) -> bool {
    latency.count() >= OVERLOAD_SAMPLES
        && state.baseline.is_some_and(|baseline| baseline.over(latency.lower_mean()) < bound_min)
}

/// Raises or lowers a binding limit by its baseline or by the experiment, or continues the experiment.
fn decide(
    config: &LimitConfig,
    next: &mut LimitState,
    round: &Observation,
    baseline: Baseline,
    mean: f64,
) {
    let is_flat = round.concurrency >= FAR * baseline.concurrency && baseline.is_within(mean, FLAT);
    next.patience = next.patience.saturating_sub(1);
    if next.caution > 0 {
        next.caution = CAUTION_ROUNDS;
    }
    if is_flat && next.patience == 0 && !round.is_probe {
        return next.raise(config.max, LimitMove::Flat);
    }
    if next.at_lower.is_empty() {
        let may_pay = baseline.over(mean) > config.goal.elasticity();
        if (next.is_fresh && may_pay) || next.limit == 1 {
            return next.raise(config.max, LimitMove::Raised);
        }
        if next.is_fresh {
            // The limit followed demand to the double of its peak, and is slow there. Half of it tells an overload
            // from a slower network in one round.
            next.lower = (next.limit / 2).max(1);
            next.direction = Direction::Between;
        }
        next.is_probing = true;
        return;
    }
    if next.at_limit.is_empty() {
        next.is_probing = false;
        return;
    }
    let errors = evidence(config, next, baseline.over(mean));
    next.probes += u32::from(round.is_probe);
    let is_wide = next.gap() > next.least_stride();
    let is_late = is_wide && next.probes >= WIDE_PROBES;
    if errors >= RAISE_ERRORS || (is_late && errors > 0.0) {
        next.raise(config.max, LimitMove::Raised);
    } else if (errors <= -LOWER_ERRORS && !is_flat) || is_late {
        next.lower();
    } else {
        next.is_fresh = false;
        next.is_probing = !next.is_probing;
    }
}

/// Evidence for a higher limit, in standard errors; negative for a lower one.
///
/// The experiment measures the elasticity; a latency above baseline/goal speaks against a raise by its
/// logarithm.
fn evidence(config: &LimitConfig, next: &mut LimitState, bound: f64) -> f64 {
    let goal = config.goal.elasticity();
    let gateways = f64::from(config.gateways.max(1));
    let ratio = ln(f64::from(next.limit) / f64::from(next.lower));
    let rise = gateways * (next.at_limit.mean() - next.at_lower.mean());
    let variance = next.at_limit.mean_variance() + next.at_lower.mean_variance();
    next.elasticity = Some(1.0 - rise / ratio);
    ((1.0 - goal) * ratio - rise) / (gateways * variance.sqrt()) + ln((bound / goal).min(1.0))
}
