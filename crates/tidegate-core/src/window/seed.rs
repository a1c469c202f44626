//! Implementation of `Law::Seed`.

use super::{Cause, LawState, StageState, WindowConfig};
use std::time::Duration;

pub(super) fn decide(config: &WindowConfig, state: &mut StageState, now: Duration) {
    state.law_state = LawState::Aimd;
    if !state.is_due(config, now) {
        return;
    }
    state.begin_period(now);
    let p99 = state.latency.take();
    let slow = p99.is_some_and(|p99| state.latency.ratio(p99) > config.latency_factor);
    let full = state.occupancy > config.occupancy_high;
    if full || slow {
        let next = (state.wanted * config.beta).max(config.window_min as f64);
        state.decreases += u64::from(next < state.wanted);
        state.wanted = next;
        state.cause = if full { Cause::DecreaseOccupancy } else { Cause::DecreaseLatency };
    } else {
        let next = state.wanted + config.increase_step as f64;
        state.wanted = next.min(config.window_max as f64);
        state.cause = Cause::Increase;
    }
    state.applied = state.wanted;
    if let Some(p99) = p99 {
        state.latency.settle_plainly(p99);
    }
}
