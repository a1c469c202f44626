//! Implementation of `Law::Cubic`. W is `state.wanted`; θ and γ are derived in `WindowConfig`.

use super::state::SinceDecision;
use super::{Cause, LawState, Neighbours, StageSample, StageState, WindowConfig};
use std::time::Duration;

/// Cut when W is this many times what Little's law asks for …
const LITTLE_OVER: f64 = 1.25;

/// … to no less than this much of it …
const LITTLE_KEPT: f64 = 0.9;

/// … and grow when that is this many times W. Between the two W rests, and μ may be wrong by as much.
const LITTLE_UNDER: f64 = 1.1;

/// An item may be in a stage this many times as long as a lease takes, if that is longer than the target. It
/// is there for up to two leases, the one before its own and its own, and while W grows by γ a period a μ
/// that remembers 2 s is a quarter behind: 2 × γ / 0.75 = 3.2 is the least with which W can still grow. With
/// less, a stage of long leases gets ever fewer credits: μ is what they allow, and what it does in the target
/// time is a part of what it holds.
const LITTLE_LEASES: f64 = 4.0;

/// CUBIC's curve is back at W_max after this long, and as far above it as it began below after twice as long.
/// By then what was learned is old: W grows as if it had never been cut.
pub(super) const CUBIC_S: f64 = 8.0;

/// CUBIC's fast convergence: one that is cut below its last W_max leaves room for others.
const FAST_CONVERGENCE: f64 = 0.85;

/// Below this mean occupancy a window is mostly unused.
const IDLE: f64 = 0.25;

/// The share of the time that a full stage may wait for the next one: as much of what it could do is lost.
const HELD_UP: f64 = 0.02;

/// The share of the time from which on whoever waits is held up, whatever is behind it. Behind Accept there
/// are only senders.
const NEARLY_ALWAYS: f64 = 0.9;

/// The forecast counts when arrivals are this many times what the stage does: chance makes up a tenth.
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
    // After which it flows again, and which is itself yet to move.
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

/// What a lease takes at least is found at the least window, where no batch is large; above it only a shorter
/// one counts. Otherwise a stage whose batches grow with its window would be given a window that grows with
/// its batches.
fn observe_lease(config: &WindowConfig, state: &mut StageState) {
    let lease_s = state.estimates.lease_s;
    state.lease_floor_s =
        if is_at_least(config, state) { lease_s } else { state.lease_floor_s.min(lease_s) };
}

/// W_L = μ·T / θ, the window whose credits are what the stage does in the time that an item may be there. A stage
/// whose lease takes more than a period stalls, so T has a bound.
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

fn is_at_least(config: &WindowConfig, state: &StageState) -> bool {
    state.wanted <= config.window_min as f64
}

/// Every measurement and past the slew limit: from the most to the least in 14 of them, 2.4 s after the last item
/// left.
fn stall(config: &WindowConfig, state: &mut StageState) {
    if !state.is_stalled() {
        state.before_stall = state.wanted;
        state.law_state = LawState::Stalled;
        state.decreases += 1;
        // The leases so far were those of a larger window. Found again at the least one, they would be taken for
        // what a lease takes at least, and each stall would leave a larger window behind.
        state.estimates.lease_s = state.lease_floor_s;
    }
    state.wanted = bounded(config, state.wanted.min(state.applied) * config.beta);
    state.applied = state.wanted;
    state.cause = Cause::Stall;
}

/// Back at once to what was held, at the upper end of the band: that admits nobody until 30 % of it is done.
/// What was held is in the sample before if all of it left together. From there on W grows as fast as it may:
/// a stall says nothing of how large a window is too large.
fn restore(config: &WindowConfig, state: &mut StageState, now: Duration) {
    let held = state.estimates.queued_items.max(state.estimates.queued_before) as f64;
    let back = (held / config.occupancy_high).min(state.before_stall * config.beta);
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
    // The last digit is that of the division.
    let is_overfull = state.was_cut(now) && state.occupancy > config.occupancy_high + 1e-9;
    if let Some(p99) = p99 {
        // At the least window the law has done what it can. If p99 is still high it is not for the window, and a
        // baseline that stayed frozen would hold the window down for ever.
        let is_congested = congestion.is_some() || is_overfull;
        state.latency.settle(p99, now, is_congested && !is_at_least(config, state));
    }
    state.cause = match congestion {
        Some(cause) => decrease(config, state, cause, now),
        // Less is granted than is held, so nobody gets in, and a further cut would not lower the occupancy but
        // raise it. Without a cut it is one message that is larger than the credits of a small window.
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

/// Never below what is held at the upper end of the band. A deeper cut would keep nobody out who is not kept out
/// already, but it would leave the band until all of it is done.
fn decrease(config: &WindowConfig, state: &mut StageState, cause: Cause, now: Duration) -> Cause {
    let held = state.estimates.queued_items as f64 / config.occupancy_high;
    let kept = if cause == Cause::DecreaseLittle { LITTLE_KEPT * state.little } else { 0.0 };
    let next = bounded(config, (state.wanted * config.beta).max(held).max(kept));
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

/// A sender that waits now and then at a window that is mostly empty gains nothing by a larger one. One does that
/// waits at a window that stays full, that is held up, or that soon will wait because the window fills from within
/// the band.
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

/// Whether the window is what limits the stage: more than `tolerated` of the time something waits that a full
/// stage has behind it. The stage's own mean occupancy does not tell: with too few credits for a batch it is
/// half empty half of the time.
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

/// Mostly unused; or used so much that it counts as a backlog, and yet below the band.
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
    // Between none and `HELD_UP` it rests: a cut would be taken back in the next period.
    is_below && !is_held_up(since, neighbours, 0.0)
}

/// Half of the way to a window whose credits are what was used.
fn shrink(config: &WindowConfig, state: &mut StageState, since: SinceDecision) -> Cause {
    let used = since.queued_mean() / config.granted_share();
    let next = bounded(config, f64::midpoint(state.wanted, used));
    let cause = if next < state.wanted { Cause::Idle } else { Cause::Hold };
    state.wanted = next;
    cause
}

/// One measurement's share of a change: a period's growth in a period, a decrease in two measurements.
fn slew(config: &WindowConfig, state: &mut StageState) {
    let most = state.applied * config.growth_max_per_delta();
    let least = state.applied * config.beta.sqrt();
    state.applied = bounded(config, state.wanted.min(most).max(least));
}
