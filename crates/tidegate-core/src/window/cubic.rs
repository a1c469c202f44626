//! Implementation of `Law::Cubic`. W is `state.window`, θ and γ are derived in `WindowConfig`.

use super::state::SinceDecision;
use super::{Cause, Downstream, LawState, StageSample, StageState, WindowConfig};
use std::time::Duration;

/// Cut when W is this many times what Little's law asks for …
const LITTLE_OVER: f64 = 1.25;

/// … to no less than this much of it …
const LITTLE_KEPT: f64 = 0.9;

/// … and grow when that is this many times W. Between the two W rests, and μ may be wrong by as much.
const LITTLE_UNDER: f64 = 1.1;

/// An item may wait this many times as long as the stage normally takes for it, if that is longer than the
/// target: with less a stage that works in long batches would be given ever smaller ones. Above `LITTLE_UNDER`,
/// so that its window can grow, and below `latency_factor`, so that this stops when its batches become slow.
const LITTLE_SERVICE: f64 = 1.5;

/// CUBIC's curve is back at W_max after this long.
const CUBIC_S: f64 = 8.0;

/// CUBIC's fast convergence: one that is cut below its last W_max leaves room for others.
const FAST_CONVERGENCE: f64 = 0.85;

/// Below this occupancy a window is mostly unused.
const IDLE: f64 = 0.25;

pub(super) fn decide(
    config: &WindowConfig,
    state: &mut StageState,
    sample: &StageSample,
    now: Duration,
    downstream: Downstream,
) {
    state.little = little_window(config, state);
    let stalls = state.estimates.silence >= config.period || downstream == Downstream::Stalled;
    match (stalls, state.is_stalled()) {
        (true, _) => stall(config, state),
        // A stage after which it flows again, and which is itself yet to move.
        (false, true) if sample.departed_items == 0 && sample.queued_items > 0 => {
            stall(config, state);
        }
        (false, true) => restore(config, state, now),
        (false, false) => {
            if state.is_due(config, now) {
                schedule(config, state, now);
            }
            slew(config, state);
        }
    }
}

/// W_L = μ·T / θ, the window whose credits are what the stage does in the time that an item may wait.
fn little_window(config: &WindowConfig, state: &StageState) -> f64 {
    let normal_s = state.baseline_p99_ns() / 1e9;
    let wait_s = config.target_delay.as_secs_f64().max(LITTLE_SERVICE * normal_s);
    let items = state.estimates.service_rate.map_or(f64::INFINITY, |rate| rate * wait_s);
    bounded(config, items / config.granted_share())
}

fn bounded(config: &WindowConfig, window: f64) -> f64 {
    // Not `clamp`, which panics when a caller's bounds are crossed.
    window.min(config.window_max as f64).max(config.window_min as f64)
}

/// Every measurement and past the slew limit: from the most to the least in 14 of them, 2.4 s after the last item
/// left.
fn stall(config: &WindowConfig, state: &mut StageState) {
    if !state.is_stalled() {
        state.before_stall = state.window;
        state.law_state = LawState::Stalled;
        state.decreases += 1;
    }
    state.window = bounded(config, state.window.min(state.applied) * config.beta);
    state.applied = state.window;
    state.cause = Cause::Stall;
}

/// Back at once to what is held at the upper end of the band: that admits nobody until 30 % of it is done.
fn restore(config: &WindowConfig, state: &mut StageState, now: Duration) {
    let held = state.estimates.queued_items as f64 / config.occupancy_high;
    let before = state.before_stall;
    remember_peak(state, before, now);
    state.window = bounded(config, state.window.max(held.min(before * config.beta)));
    state.applied = state.window;
    state.cause = Cause::Restore;
    state.begin_period(now);
}

fn schedule(config: &WindowConfig, state: &mut StageState, now: Duration) {
    let since = state.begin_period(now);
    let p99 = state.latency.take();
    let congestion = congestion(config, state, p99);
    let overfull = state.occupancy > config.occupancy_high + 1e-9;
    let at_least = state.window <= config.window_min as f64;
    if let Some(p99) = p99 {
        // At the least window the law has done what it can. If p99 is still high it is not for the window, and a
        // baseline that stayed frozen would hold the window down for ever.
        let frozen = (congestion.is_some() || overfull) && !at_least;
        state.latency.settle(p99, now, frozen);
    }
    state.cause = match congestion {
        Some(cause) => decrease(config, state, cause, now),
        None if overfull => Cause::Hold,
        None if wants_more(config, state, since) => increase(config, state, now),
        None if is_idle(config, state, since) => shrink_idle(config, state, since),
        None => Cause::Hold,
    };
}

fn congestion(config: &WindowConfig, state: &StageState, p99_ns: Option<f64>) -> Option<Cause> {
    if p99_ns.is_some_and(|p99| state.latency.ratio(p99) > config.latency_factor) {
        Some(Cause::DecreaseLatency)
    } else if state.window > LITTLE_OVER * state.little {
        Some(Cause::DecreaseLittle)
    } else {
        None
    }
}

/// Never below what is held at the upper end of the band. A deeper cut would admit nobody sooner, because less than
/// is held is granted either way, but it would leave the band until all of it is done.
fn decrease(config: &WindowConfig, state: &mut StageState, cause: Cause, now: Duration) -> Cause {
    let held = state.estimates.queued_items as f64 / config.occupancy_high;
    let mut next = (state.window * config.beta).max(held);
    if cause == Cause::DecreaseLittle {
        next = next.max(LITTLE_KEPT * state.little);
    }
    let next = bounded(config, next);
    if next >= state.window {
        return Cause::Hold;
    }
    let before = state.window;
    remember_peak(state, before, now);
    state.window = next;
    state.decreases += 1;
    cause
}

fn remember_peak(state: &mut StageState, window: f64, now: Duration) {
    let fell_short = state.peak.is_some_and(|peak| window < peak);
    state.peak = Some(if fell_short { FAST_CONVERGENCE * window } else { window });
    state.decreased_at = now;
    state.law_state = LawState::Cubic;
}

fn wants_more(config: &WindowConfig, state: &StageState, since: SinceDecision) -> bool {
    let fills = state.time_to_fill(config).is_some_and(|time| time < config.period);
    (since.waited || fills) && state.little > LITTLE_UNDER * state.window
}

fn increase(config: &WindowConfig, state: &mut StageState, now: Duration) -> Cause {
    let most = config.growth_max() * state.window;
    let curve = state.peak.map_or(f64::INFINITY, |peak| {
        let from_peak = now.saturating_sub(state.decreased_at).as_secs_f64() / CUBIC_S - 1.0;
        peak * (1.0 + (1.0 - config.beta) * from_peak * from_peak * from_peak)
    });
    let next = curve.min(most).max(state.window + config.increase_step as f64);
    state.window = bounded(config, next.min(state.little));
    Cause::Increase
}

/// Mostly unused; or used so much that it counts as a backlog, and yet below the band.
fn is_idle(config: &WindowConfig, state: &StageState, since: SinceDecision) -> bool {
    let used = since.queued_max as f64 / state.window;
    let backlogged = since.queued_max >= config.backlog_min();
    !since.waited && (used < IDLE || (backlogged && used < config.occupancy_low))
}

/// Half of the way to a window whose credits are what was used.
fn shrink_idle(config: &WindowConfig, state: &mut StageState, since: SinceDecision) -> Cause {
    let used = since.queued_max as f64 / config.granted_share();
    let next = bounded(config, f64::midpoint(state.window, used));
    let cause = if next < state.window { Cause::Idle } else { Cause::Hold };
    state.window = next;
    cause
}

/// One measurement's share of a change: a period's growth in a period, a decrease in two measurements.
fn slew(config: &WindowConfig, state: &mut StageState) {
    let most = state.applied * config.growth_max_per_delta();
    let least = state.applied * config.beta.sqrt();
    state.applied = bounded(config, state.window.min(most).max(least));
}
