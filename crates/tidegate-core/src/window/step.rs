use super::{Law, Neighbours, StageSample, StageState, WindowConfig, cubic, seed};
use std::time::Duration;

/// State of a stage after one more sample, including its new window.
///
/// Pure and total: the same arguments give the same result, and any arguments give one within the bounds. `now` is
/// the time since a start of the caller's choice; a time that goes backwards counts as standing still.
///
/// ```
/// use std::time::Duration;
/// use tidegate_core::window::{Law, Neighbours, StageSample, StageState, WindowConfig, step};
///
/// let config = WindowConfig::default();
/// let busy = StageSample {
///     queued_items: 609,
///     queued_bytes: 60_900,
///     arrived_items: 10_000,
///     departed_items: 10_000,
///     waited_ns: 100_000_000,
///     ..StageSample::default()
/// };
/// let mut state = StageState::new(&config);
/// for tick in 0..=20 {
///     let now = Duration::from_millis(tick * 100);
///     state = step(Law::Cubic, &config, &state, &busy, now, Neighbours::default());
/// }
/// // 100,000 items a second, and senders that wait: it grows by 19 % at each of two decisions.
/// assert_eq!(state.wanted().round(), 1_450.0);
/// ```
#[must_use]
pub fn step(
    law: Law,
    config: &WindowConfig,
    state: &StageState,
    sample: &StageSample,
    now: Duration,
    neighbours: Neighbours,
) -> StageState {
    let mut next = *state;
    next.observe(config, sample, now);
    match law {
        Law::Cubic => cubic::decide(config, &mut next, sample, now, neighbours),
        Law::Seed => seed::decide(config, &mut next, now),
    }
    next.granted = next.applied;
    next
}
