//! Implementation of `Law::Cubic`. W is `state.wanted`; θ and γ are derived in `WindowConfig`.

use super::state::{CUBIC_S, SinceDecision};
use super::{Cause, LawState, Neighbours, StageSample, StageState, WindowConfig};
use std::time::Duration;

/// Decrease when W is this many times the window of Little's law …
const LITTLE_OVER: f64 = 1.25;

/// … to no less than this share of it …
const LITTLE_KEPT: f64 = 0.9;

/// … and increase when it is this many times W. In between W stays, which tolerates the same error in μ.
const LITTLE_UNDER: f64 = 1.1;

/// Time of an item in a stage, in leases, if that is longer than the target. An item is there for up to two
/// leases, the one before its own and its own. While W grows by γ per period, a μ with a memory of 2 s is a
/// quarter behind: 2 × γ / 0.75 = 3.2 is the minimum with which W can still grow. With less, a stage of long
/// leases would get ever fewer credits: its μ is limited by its credits, and its work within the target time is
/// only a part of the items it holds.
const LITTLE_LEASES: f64 = 4.0;

/// CUBIC's fast convergence: a window that is cut below its last W_max releases capacity for others.
const FAST_CONVERGENCE: f64 = 0.85;

/// Mean occupancy below which a window is mostly unused.
const IDLE: f64 = 0.25;

/// Share of the time that a full stage may wait for the next one: the same share of its throughput is lost.
const HELD_UP: f64 = 0.02;

/// Share of the time from which a waiting sender is held up, whatever is behind it. Behind Accept there are only
/// senders.
const NEARLY_ALWAYS: f64 = 0.9;

/// The forecast counts when arrivals are this many times the service rate: random variation makes up a tenth.
const SURPLUS: f64 = 1.1;

pub(super) fn decide(
    config: &WindowConfig,
    state: &mut StageState,
    sample: &StageSample,
    now: Duration,
    neighbours: Neighbours,
) {
    observe_lease(config, state);
    state.little = little_window(config, state);
    let stalls = state.estimates.silence >= config.period || neighbours.downstream_stalls;
    // The stage flows again, but this stage itself has not moved yet.
    let is_yet_to_move = sample.departed_items == 0 && sample.queued_items > 0;
    if stalls || (state.is_stalled() && is_yet_to_move) {
        stall(config, state);
    } else if state.is_stalled() {
        restore(config, state, now);
    } else {
        if state.is_due(config, now) {
            schedule(config, state, now, neighbours);
        }
        slew(config, state);
    }
}

/// Records the shortest lease time. The minimum is measured at the minimum window, where no batch is large; above
/// it only a shorter lease counts. Otherwise a stage whose batches grow with its window would get a window that
/// grows with its batches.
fn observe_lease(config: &WindowConfig, state: &mut StageState) {
    let lease_s = state.estimates.lease_s;
    state.lease_floor_s =
        if is_at_minimum(config, state) { lease_s } else { state.lease_floor_s.min(lease_s) };
}

/// W_L = μ·T / θ, the window whose credits equal the work of the stage in the time that an item may be there. A
/// stage whose lease exceeds a period stalls, so T is bounded.
fn little_window(config: &WindowConfig, state: &StageState) -> f64 {
    let lease_s = state.lease_floor_s.min(config.period.as_secs_f64());
    let time_s = config.target_delay.as_secs_f64().max(LITTLE_LEASES * lease_s);
    let items = state.estimates.service_rate.map_or(f64::INFINITY, |rate| rate * time_s);
    bounded(config, items / config.granted_share())
}

fn bounded(config: &WindowConfig, window: f64) -> f64 {
    // Not `clamp`, which panics when a caller's bounds are crossed.
    window.min(config.window_max as f64).max(config.window_min as f64)
}

fn is_at_minimum(config: &WindowConfig, state: &StageState) -> bool {
    state.wanted <= config.window_min as f64
}

/// Shrinks with every measurement, without the slew limit: from the maximum to the minimum in 14 of them, 2.4 s
/// after the last item left.
fn stall(config: &WindowConfig, state: &mut StageState) {
    if !state.is_stalled() {
        state.before_stall = state.wanted;
        state.law_state = LawState::Stalled;
        state.decreases += 1;
        // Past leases were those of a larger window. Measured again at the minimum window, they would count as the
        // shortest lease, and each stall would leave a larger window behind.
        state.estimates.lease_s = state.lease_floor_s;
    }
    state.wanted = bounded(config, state.wanted.min(state.applied) * config.beta);
    state.applied = state.wanted;
    state.cause = Cause::Stall;
}

/// Returns at once to the items held, at the upper end of the band: that admits nothing until 30 % of them are
/// done. If all items left together, they are in the sample before. From there W grows at its maximum rate: a
/// stall carries no information about the right window.
fn restore(config: &WindowConfig, state: &mut StageState, now: Duration) {
    let queued = state.estimates.queued_items.max(state.estimates.queued_before) as f64;
    let back = (queued / config.occupancy_high).min(state.before_stall * config.beta);
    state.wanted = bounded(config, state.wanted.max(back));
    state.applied = state.wanted;
    state.law_state = LawState::Slow;
    state.peak = None;
    state.cause = Cause::Restore;
    state.begin_period(now);
}

fn schedule(config: &WindowConfig, state: &mut StageState, now: Duration, neighbours: Neighbours) {
    let since = state.begin_period(now);
    let p99 = state.latency.take();
    let congestion = congestion(config, state, p99);
    // The tolerance covers the last digit of the division.
    let is_overfull = state.was_cut(now) && state.occupancy > config.occupancy_high + 1e-9;
    if let Some(p99) = p99 {
        // At the minimum window the law can do no more. If p99 is still high, the window is not the cause, and a
        // frozen baseline would keep the window small forever.
        let is_congested = congestion.is_some() || is_overfull;
        state.latency.settle(p99, now, is_congested && !is_at_minimum(config, state));
    }
    state.cause = match congestion {
        Some(cause) => decrease(config, state, cause, now),
        // Fewer credits are granted than items are held, so nothing enters, and a further cut would raise the
        // occupancy. Without a cut, the cause is one message larger than the credits of a small window.
        None if is_overfull => Cause::Hold,
        None if wants_more(config, state, since, neighbours) => increase(config, state, now),
        None if is_unused(config, state, since, neighbours) => shrink(config, state, since),
        None => Cause::Hold,
    };
}

fn congestion(config: &WindowConfig, state: &StageState, p99_ns: Option<f64>) -> Option<Cause> {
    if p99_ns.is_some_and(|p99| state.latency.ratio(p99) > config.latency_factor) {
        Some(Cause::DecreaseLatency)
    } else if state.wanted > LITTLE_OVER * state.little {
        Some(Cause::DecreaseLittle)
    } else {
        None
    }
}

/// Cuts the window, never below the items held at the upper end of the band. A deeper cut would refuse no more
/// items, but would leave the band until all of them are done.
fn decrease(config: &WindowConfig, state: &mut StageState, cause: Cause, now: Duration) -> Cause {
    let queued = state.estimates.queued_items as f64 / config.occupancy_high;
    let guaranteed = if cause == Cause::DecreaseLittle { LITTLE_KEPT * state.little } else { 0.0 };
    let next = bounded(config, (state.wanted * config.beta).max(queued).max(guaranteed));
    if next >= state.wanted {
        return Cause::Hold;
    }
    let fell_short = state.peak.is_some_and(|peak| state.wanted < peak);
    state.peak = Some(if fell_short { FAST_CONVERGENCE * state.wanted } else { state.wanted });
    state.decreased_at = now;
    state.law_state = LawState::Cubic;
    state.wanted = next;
    state.decreases += 1;
    cause
}

/// Decides if a larger window helps. A sender that waits occasionally at a mostly empty window gains nothing. A
/// sender gains that waits at a full window, that is held up, or that will soon wait because the window fills from
/// within the band.
fn wants_more(
    config: &WindowConfig,
    state: &StageState,
    since: SinceDecision,
    neighbours: Neighbours,
) -> bool {
    let is_full = since.queued_mean() >= config.occupancy_low * state.wanted;
    let fills = state.occupancy >= config.occupancy_low
        && state.arrival_rate() > SURPLUS * state.service_rate()
        && state.time_to_fill(config).is_some_and(|time| time < config.period);
    let waits =
        (since.waited_share() > 0.0 && is_full) || is_held_up(since, neighbours, HELD_UP) || fills;
    waits && state.little > LITTLE_UNDER * state.wanted
}

/// True if the window limits the stage: for more than `tolerated` of the time, items wait that a full stage has
/// behind it. The stage's own mean occupancy is no indicator: with too few credits for a batch it is half empty
/// half of the time.
fn is_held_up(since: SinceDecision, neighbours: Neighbours, tolerated: f64) -> bool {
    let share = since.waited_share();
    share > NEARLY_ALWAYS || (share > tolerated && neighbours.upstream_presses)
}

fn increase(config: &WindowConfig, state: &mut StageState, now: Duration) -> Cause {
    let from_peak = now.saturating_sub(state.decreased_at).as_secs_f64() / CUBIC_S - 1.0;
    if from_peak >= 1.0 {
        state.peak = None;
        state.law_state = LawState::Slow;
    }
    let curve = state.peak.map_or(f64::INFINITY, |peak| {
        peak * (1.0 + (1.0 - config.beta) * from_peak * from_peak * from_peak)
    });
    let most = config.growth_max() * state.wanted;
    let next = curve.min(most).max(state.wanted + config.increase_step as f64);
    state.wanted = bounded(config, next.min(state.little));
    Cause::Increase
}

/// Mostly unused; or used enough to count as a backlog, and still below the band.
fn is_unused(
    config: &WindowConfig,
    state: &StageState,
    since: SinceDecision,
    neighbours: Neighbours,
) -> bool {
    let queued = since.queued_mean();
    let used = queued / state.wanted;
    let is_backlogged = queued >= config.backlog_min() as f64;
    let is_below = used < IDLE || (is_backlogged && used < config.occupancy_low);
    // Between none and `HELD_UP` the window stays: a cut would be reverted in the next period.
    is_below && !is_held_up(since, neighbours, 0.0)
}

/// Moves halfway to a window whose credits equal the used slots.
fn shrink(config: &WindowConfig, state: &mut StageState, since: SinceDecision) -> Cause {
    let used = since.queued_mean() / config.granted_share();
    let next = bounded(config, f64::midpoint(state.wanted, used));
    let cause = if next < state.wanted { Cause::Idle } else { Cause::Hold };
    state.wanted = next;
    cause
}

/// Applies one measurement's share of a change: a period's growth in a period, a decrease in two measurements.
fn slew(config: &WindowConfig, state: &mut StageState) {
    let most = state.applied * config.growth_max_per_delta();
    let least = state.applied * config.beta.sqrt();
    state.applied = bounded(config, state.wanted.min(most).max(least));
}
