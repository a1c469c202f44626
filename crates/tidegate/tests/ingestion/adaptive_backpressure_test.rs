#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

//! The real pipeline under loads that come in squares, saw teeth and bursts, with stores that are slow, uneven,
//! blocked or failing: nothing is dropped, memory stays within the budget, and the windows do what they should.
//!
//! Time is paused, so that a minute takes as long as its work. Only the store takes time in it: it is the
//! bottleneck of every run.

#[path = "adaptive_backpressure/draws.rs"]
mod draws;
#[path = "adaptive_backpressure/load.rs"]
mod load;
#[path = "adaptive_backpressure/run.rs"]
mod run;
#[path = "adaptive_backpressure/sender.rs"]
mod sender;
#[path = "adaptive_backpressure/sim_store.rs"]
mod sim_store;

use load::Load;
use proptest::prelude::*;
use run::{Seen, run};
use sender::Sender;
use sim_store::{Mood, SimStore, Spread};
use std::time::Duration;
use tidegate::signal::BackpressureLevel;
use tidegate::window::{Stage, WindowConfig};
use tokio::time::sleep;

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn virtual_time<T>(body: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().unwrap().block_on(body)
}

/// Several senders that share a load.
fn senders(count: u64, load: Load, batch_max: usize) -> Vec<Sender> {
    let load = load.divided(count as f64);
    let sender = |seed| Sender { name: format!("sender-{seed}"), load, batch_max, seed };
    (1..=count).map(sender).collect()
}

const CAPACITY_PER_S: f64 = 20_000.0;

/// Loads that are twice the capacity at their height, and hardly anything at their lowest.
const SQUARE: Load = Load::Square {
    high_per_s: 2.0 * CAPACITY_PER_S,
    low_per_s: 0.1 * CAPACITY_PER_S,
    period_s: 5.0,
};
const SAWTOOTH: Load = Load::Sawtooth { peak_per_s: 2.5 * CAPACITY_PER_S, period_s: 7.0 };
const BURSTS: Load =
    Load::Bursts { high_per_s: 3.0 * CAPACITY_PER_S, low_per_s: 0.1 * CAPACITY_PER_S, mean_s: 1.5 };

async fn stress(load: Load, windows: WindowConfig, batch_max: usize) -> Seen {
    let store = SimStore::new(Mood::Works { per_s: CAPACITY_PER_S }, Spread::Exponential, 1);
    let seen = run(windows, &store, senders(5, load, batch_max), s(30), async {}).await;
    seen.assert_nothing_lost(&store);
    let stored = store.records() as f64;
    assert!(stored > 20.0 * CAPACITY_PER_S, "{stored} records is no stress\n{}", seen.story());
    assert!(seen.story().contains("w increase"), "no window grew\n{}", seen.story());
    seen
}

#[tokio::test(start_paused = true)]
async fn a_square_wave_drops_nothing_and_stays_within_the_budget() {
    stress(SQUARE, WindowConfig::default(), 200).await;
}

#[tokio::test(start_paused = true)]
async fn a_sawtooth_drops_nothing_and_stays_within_the_budget() {
    stress(SAWTOOTH, WindowConfig::default(), 200).await;
}

#[tokio::test(start_paused = true)]
async fn random_bursts_drop_nothing_and_stay_within_the_budget() {
    stress(BURSTS, WindowConfig::default(), 200).await;
}

/// The budget is what limits here, not the windows; and batches are larger than the least window.
#[tokio::test(start_paused = true)]
async fn a_small_budget_is_kept_too_whatever_the_batches() {
    for (budget_mib, batch_max) in [(16, 4_000), (16, 20), (4, 1_000), (2, 200)] {
        let windows = WindowConfig { budget_bytes: budget_mib << 20, ..WindowConfig::default() };
        for load in [SQUARE, BURSTS] {
            let store =
                SimStore::new(Mood::Works { per_s: CAPACITY_PER_S }, Spread::Exponential, 1);
            let seen = run(windows, &store, senders(5, load, batch_max), s(15), async {}).await;
            seen.assert_nothing_lost(&store);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_for_a_while_costs_nothing_but_the_while() {
    let store = SimStore::new(Mood::Works { per_s: CAPACITY_PER_S }, Spread::Fixed, 1);
    let failing = async {
        for _ in 0..3 {
            sleep(s(5)).await;
            store.set(Mood::Fails);
            sleep(s(3)).await;
            store.set(Mood::Works { per_s: CAPACITY_PER_S });
        }
    };
    let load = Load::Steady { per_s: 1.5 * CAPACITY_PER_S };
    let seen = run(WindowConfig::default(), &store, senders(5, load, 200), s(30), failing).await;
    seen.assert_nothing_lost(&store);
    for from_s in [5, 13, 21] {
        let failing = || seen.between(from_s + 1, from_s + 3).map(|tick| &tick.pipeline);
        assert!(failing().all(|pipeline| !pipeline.store_ok), "{}", seen.story());
        let level = failing().map(|pipeline| pipeline.signal.level).max();
        assert_eq!(level, Some(BackpressureLevel::Reject), "{}", seen.story());
        let after = || seen.between(from_s + 5, from_s + 8).map(|tick| &tick.pipeline);
        assert!(after().all(|pipeline| pipeline.store_ok), "{}", seen.story());
        assert!(seen.rate(from_s + 5, from_s + 8) > 0.9 * CAPACITY_PER_S, "{}", seen.story());
    }
    let (last, least) = (seen.ticks.last().unwrap(), BackpressureLevel::None);
    assert_eq!(last.pipeline.signal.level, least, "{}", seen.story());
}

/// What is measured in a stall must not be taken for how the store is: each would leave a larger window behind.
#[tokio::test(start_paused = true)]
async fn a_store_that_blocks_again_and_again_has_the_same_window_after_each_time() {
    let store = SimStore::new(Mood::Works { per_s: CAPACITY_PER_S }, Spread::Fixed, 1);
    let blocking = async {
        for _ in 0..4 {
            sleep(s(15)).await;
            store.set(Mood::Blocks);
            sleep(s(5)).await;
            store.set(Mood::Works { per_s: CAPACITY_PER_S });
        }
    };
    let load = Load::Steady { per_s: 2.0 * CAPACITY_PER_S };
    let seen = run(WindowConfig::default(), &store, senders(8, load, 100), s(95), blocking).await;
    seen.assert_nothing_lost(&store);
    let little = CAPACITY_PER_S * 0.25 / WindowConfig::default().granted_share();
    for at_s in [14, 34, 54, 74, 94] {
        let stage = &seen.between(at_s, at_s + 1).next().unwrap().pipeline.stages[4];
        let window = stage.window as f64 / little;
        assert!((0.7..1.3).contains(&window), "{window} after {at_s} s\n{}", seen.story());
    }
}

fn spreads() -> impl Strategy<Value = Spread> {
    prop_oneof![
        Just(Spread::Fixed),
        Just(Spread::Exponential),
        (0.01..0.2_f64, 2.0..20.0_f64)
            .prop_map(|(slow_share, slow_factor)| Spread::TwoSpeeds { slow_share, slow_factor }),
    ]
}

/// Stores of any speed, and senders that have more than those can do.
#[derive(Clone, Debug)]
struct Overload {
    seed: u64,
    per_s: f64,
    spread: Spread,
    times: f64,
    senders: u64,
    batch_max: usize,
}

fn overloads() -> impl Strategy<Value = Overload> {
    let store = (any::<u64>(), 10_000.0..30_000.0_f64, spreads());
    // So many that all that the windows hold is not yet all that they have under way.
    (store, 1.5..4.0_f64, 4..8_u64, 40..200_usize).prop_map(
        |((seed, per_s, spread), times, senders, batch_max)| Overload {
            seed,
            per_s,
            spread,
            times,
            senders,
            batch_max,
        },
    )
}

impl Overload {
    fn store(&self) -> std::sync::Arc<SimStore> {
        SimStore::new(Mood::Works { per_s: self.per_s }, self.spread, self.seed)
    }

    async fn run(
        &self,
        store: &std::sync::Arc<SimStore>,
        time_s: u64,
        meanwhile: impl Future<Output = ()>,
    ) -> Seen {
        let load = Load::Steady { per_s: self.times * self.per_s };
        let senders = senders(self.senders, load, self.batch_max);
        let seen = run(WindowConfig::default(), store, senders, s(time_s), meanwhile).await;
        seen.assert_nothing_lost(store);
        seen
    }
}

proptest! {
    // Every case is about a minute of the real pipeline, and one that fails tells its story: none is looked for
    // that is smaller.
    #![proptest_config(ProptestConfig {
        cases: 4,
        max_shrink_iters: 0,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn windows_converge_within_30_s_and_hold_the_band(overload in overloads()) {
        let store = overload.store();
        let seen = virtual_time(overload.run(&store, 45, async {}));
        let converged = seen.converged_after(45);
        prop_assert!(converged <= s(30), "{:?}\n{}", converged, seen.story());
        let windows = WindowConfig::default();
        for stages in [&[Stage::Store][..], &Stage::ALL] {
            let in_band = seen.in_band(stages, &windows);
            prop_assert!(in_band >= 0.9, "{:?} {}\n{}", stages, in_band, seen.story());
        }
        let rate = seen.rate(5, 45) / overload.per_s;
        prop_assert!(rate > 0.9, "{} of its capacity\n{}", rate, seen.story());
    }

    #[test]
    fn a_blocked_store_brings_every_window_to_the_least_within_5_s_and_back(
        overload in overloads(),
        blocked_s in 5..20_u64,
    ) {
        let store = overload.store();
        let blocking = async {
            sleep(s(30)).await;
            store.set(Mood::Blocks);
            sleep(s(blocked_s)).await;
            store.set(Mood::Works { per_s: overload.per_s });
        };
        let lifted_s = 30 + blocked_s;
        let seen = virtual_time(overload.run(&store, lifted_s + 15, blocking));
        let least = WindowConfig::default().window_min;
        for tick in seen.between(35, lifted_s) {
            let is_least = tick.pipeline.stages.iter().all(|stage| stage.window == least);
            prop_assert!(is_least, "after {:?}\n{}", tick.at, seen.story());
            let level = tick.pipeline.signal.level;
            prop_assert_eq!(level, BackpressureLevel::Reject, "after {:?}\n{}", tick.at, seen.story());
        }
        let before = seen.between(29, 30).last().unwrap();
        let after = seen.between(lifted_s + 9, lifted_s + 10).last().unwrap();
        for (before, after) in before.pipeline.stages.iter().zip(&after.pipeline.stages) {
            let back = after.window as f64 / before.window as f64;
            prop_assert!(back > 0.7, "{:?} {}\n{}", before.stage, back, seen.story());
        }
        let rate = seen.rate(lifted_s + 5, lifted_s + 15) / overload.per_s;
        prop_assert!(rate > 0.9, "{} of its capacity\n{}", rate, seen.story());
    }
}
