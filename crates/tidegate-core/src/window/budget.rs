//! Implementation of the memory budget: the windows of all stages, within the memory of all.

use super::{Law, Stage, StageSample, StageState, WindowConfig};

/// Divisor of the budget: each stage owns 1/20 of it, whatever the others hold. A stage without memory would keep
/// the one before it from freeing any.
const OWN_PART: u64 = 20;

/// Windows and byte bounds within the budget.
pub(super) struct Shares {
    pub windows: [f64; Stage::COUNT],
    pub bytes: [u64; Stage::COUNT],
    /// Share of the demand above the floors that fits, 0 … 1.
    pub rho: f64,
}

pub(super) fn share(
    law: Law,
    config: &WindowConfig,
    states: &[StageState; Stage::COUNT],
    samples: &[StageSample; Stage::COUNT],
    reserved_bytes: u64,
) -> Shares {
    let budget = config.budget_bytes.saturating_sub(reserved_bytes);
    let (windows, rho) = match law {
        Law::Cubic => with_floors(config, states, budget as f64),
        Law::Seed => in_proportion(config, states, budget as f64),
    };
    let wanted = std::array::from_fn(|i| windows[i] * states[i].estimates.item_bytes(config));
    let bytes = byte_bounds(config, &wanted, samples, budget);
    Shares { windows, bytes, rho }
}

/// Floors first: the minimum window and the items held already. A window below that (in a stall) is its own floor:
/// a budget never raises one.
fn with_floors(
    config: &WindowConfig,
    states: &[StageState; Stage::COUNT],
    budget: f64,
) -> ([f64; Stage::COUNT], f64) {
    let floor = |state: &StageState| {
        let queued = state.estimates.queued_items as f64;
        state.applied.min(queued.max(config.window_min as f64))
    };
    let bytes_of = |slots: &dyn Fn(&StageState) -> f64| -> f64 {
        states.iter().map(|state| slots(state) * state.estimates.item_bytes(config)).sum()
    };
    let floors = bytes_of(&floor);
    let above = bytes_of(&|state| state.applied - floor(state));
    let left = budget - floors;
    let rho = if left >= above { 1.0 } else { (left / above).clamp(0.0, 1.0) };
    let window = |state: &StageState| floor(state) + rho * (state.applied - floor(state));
    (std::array::from_fn(|i| window(&states[i])), rho)
}

/// As in the seed: all scaled down by one factor, with the minimum window kept, whatever that adds up to.
fn in_proportion(
    config: &WindowConfig,
    states: &[StageState; Stage::COUNT],
    budget: f64,
) -> ([f64; Stage::COUNT], f64) {
    let wanted: f64 =
        states.iter().map(|state| state.applied * state.estimates.item_bytes(config)).sum();
    let rho = if wanted > budget { budget / wanted } else { 1.0 };
    let least = config.window_min as f64;
    (std::array::from_fn(|i| (states[i].applied * rho).max(least)), rho)
}

/// Hard bound in bytes that does not depend on a mean. Each stage gets the bytes it holds or its own part, then
/// the worth of its window as far as there is enough, then a fifth of the rest. The bytes held now were within the
/// last bounds, and those within the budget: the total always is.
fn byte_bounds(
    config: &WindowConfig,
    wanted: &[f64; Stage::COUNT],
    samples: &[StageSample; Stage::COUNT],
    budget: u64,
) -> [u64; Stage::COUNT] {
    let own = config.budget_bytes / OWN_PART;
    let guaranteed: [u64; Stage::COUNT] = std::array::from_fn(|i| samples[i].queued_bytes.max(own));
    let guaranteed_sum = guaranteed.iter().fold(0_u64, |sum, bytes| sum.saturating_add(*bytes));
    let left = budget.saturating_sub(guaranteed_sum) as f64;
    let more: [f64; Stage::COUNT] =
        std::array::from_fn(|i| (wanted[i] - guaranteed[i] as f64).max(0.0));
    let more_sum: f64 = more.iter().sum();
    let scale = if more_sum > left { left / more_sum } else { 1.0 };
    let spare = (left - more_sum * scale).max(0.0) / Stage::COUNT as f64;
    std::array::from_fn(|i| guaranteed[i].saturating_add((more[i] * scale + spare) as u64))
}
