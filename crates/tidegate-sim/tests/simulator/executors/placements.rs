//! Promises of the placements, with tasks of 50 ms on executors of one slot, in virtual time.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::time::Duration;
use tidegate_core::capacity::Placement;
use tidegate_sim::executors::{
    Burst, ExecutorsReport, ExecutorsScenario, Policy, TaskTime, compare, run,
};

const PULL: Policy = Policy::Ours(Placement::Pull);

fn steady(policy: Policy, executors: u32, load: f64) -> ExecutorsScenario {
    ExecutorsScenario { tasks: 50_000, ..ExecutorsScenario::steady(policy, executors, load, 1) }
}

fn short(policy: Policy, executors: u32, load: f64) -> ExecutorsScenario {
    ExecutorsScenario { tasks: 10_000, ..steady(policy, executors, load) }
}

#[test]
fn pull_wastes_nothing_and_needs_four_messages_a_task() {
    for (executors, load) in [(3, 0.8), (30, 0.95), (300, 0.95)] {
        let report = run(&short(PULL, executors, load));
        assert_eq!(report.wasted, 0);
        assert!(report.messages_per_task() <= 4.001, "{report:?}");
    }
}

#[test]
fn no_placement_of_ours_wastes_a_submission_that_it_could_have_known_of() {
    for placement in Placement::ALL {
        let report = run(&short(Policy::Ours(placement), 30, 0.95));
        assert_eq!(report.wasted, 0, "{placement}");
    }
}

#[test]
fn waits_are_short() {
    let three = run(&steady(PULL, 3, 0.8));
    assert!(three.wait_mean_ms <= 34.0, "{three:?}");
    // With a round trip of 1 ms no line that is served in order can do better than 185 ms in the long run: a slot
    // is taken for 51 ms, and three of those at 0.8 / 50 ms wait that long. With half of it 180 ms are kept.
    assert!(three.wait_p99_ms <= 190.0, "{three:?}");
    let hop = Duration::from_micros(250);
    let near = run(&ExecutorsScenario { hop, ..steady(PULL, 3, 0.8) });
    assert!(near.wait_p99_ms <= 180.0, "{near:?}");
    let thirty = run(&steady(PULL, 30, 0.95));
    assert!(thirty.wait_mean_ms <= 34.0, "{thirty:?}");
}

#[test]
fn pull_waits_as_long_as_the_theory_of_one_line_says() {
    // The recursion of Kiefer and Wolfowitz: each goes to the slot that is free first.
    let report = run(&steady(PULL, 3, 0.8));
    let [mean_ms, p99_ms] = theory(3, 0.8, 300_000);
    let (mean, p99) = (report.wait_mean_ms / mean_ms, report.wait_p99_ms / p99_ms);
    assert!((0.92..1.08).contains(&mean), "{report:?} and {mean_ms} ms");
    assert!((0.92..1.08).contains(&p99), "{report:?} and {p99_ms} ms");
}

/// The mean and the 99th percentile of the wait in one line, in ms.
fn theory(executors: u32, load: f64, tasks: usize) -> [f64; 2] {
    let (mut now, mut state) = (0.0, 99_u64);
    let mut free = vec![0.0_f64; executors as usize];
    let mut waits: Vec<f64> = (0..tasks)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let uniform = ((state >> 11) + 1) as f64 / (1_u64 << 53) as f64;
            #[allow(clippy::disallowed_methods, reason = "the last digit does not matter here")]
            let gap = -uniform.ln() * 50.0 / (load * f64::from(executors));
            now += gap;
            let first = (0..free.len()).min_by(|a, b| free[*a].total_cmp(&free[*b])).unwrap();
            let ordered = free[first].max(now);
            free[first] = ordered + 51.0;
            ordered + 0.5 - now
        })
        .collect();
    waits.sort_by(f64::total_cmp);
    [waits.iter().sum::<f64>() / tasks as f64, waits[tasks * 99 / 100]]
}

#[test]
fn saturated_executors_work_nearly_all_the_time() {
    for executors in [3, 30, 300] {
        let used = |placement| run(&short(Policy::Ours(placement), executors, 1.5)).used;
        for direct in [Placement::Pull, Placement::Optimistic, Placement::Queue] {
            assert!(used(direct) >= 0.97, "{direct} of {executors}");
        }
        // One more round trip for each task.
        for two_steps in [Placement::Semaphore, Placement::Reserve] {
            assert!(used(two_steps) >= 0.94, "{two_steps} of {executors}");
        }
    }
}

#[test]
fn a_burst_is_over_soon() {
    let table = compare(&[PULL, Policy::Ours(Placement::Queue)], &[3, 30, 300], 0.8, 1_000, 1);
    for row in table.rows {
        assert!(row.recovery.is_some_and(|ratio| ratio <= 1.3), "{row:?}");
    }
}

#[test]
fn the_seeds_loop_collapses_at_its_own_size() {
    let report = run(&steady(Policy::Seed, 3, 0.8));
    assert!(report.goodput() < 0.15, "sleepers hold every worker: {report:?}");
    assert!(report.wasted_per_task() > 1.0);
    let burst = Some(Burst { at: Duration::from_secs(2), work: Duration::from_secs(1) });
    let scenario = ExecutorsScenario { burst, tasks: u64::MAX, ..steady(Policy::Seed, 30, 0.8) };
    let theory = scenario.recovery_in_theory().unwrap();
    let slept = run(&scenario).recovered;
    assert!(slept.is_none_or(|slept| slept > theory * 3), "{slept:?}");
    let ours = run(&ExecutorsScenario { policy: PULL, ..scenario }).recovered;
    assert!(ours.is_some_and(|ours| ours < theory * 13 / 10), "{ours:?}");
}

#[test]
fn what_is_told_of_the_wait_comes_true() {
    let told = |executors, load, spread| -> ExecutorsReport {
        run(&ExecutorsScenario { spread, tasks: 20_000, ..steady(PULL, executors, load) })
    };
    for spread in [TaskTime::Fixed, TaskTime::Exponential] {
        // In a backlog, and with many executors that are busy nearly all the time, it is right to a few percent.
        for (executors, load) in [(30, 0.95), (3, 1.2)] {
            let [least, median, most] =
                told(executors, load, spread).wait_per_estimate.map(Option::unwrap);
            assert!((0.9..=1.1).contains(&median), "{executors} {load} {spread:?}: {median}");
            assert!(least >= 0.6 && most <= 1.6, "{executors} {load} {spread:?}: {least} {most}");
        }
        // With few executors most of the wait is for one of them, of which nobody knows how far it has got.
        let [_, median, most] = told(3, 0.8, spread).wait_per_estimate.map(Option::unwrap);
        assert!((0.7..=1.1).contains(&median) && most <= 2.0, "{spread:?}: {median} {most}");
    }
}

#[test]
fn managers_that_share_executors_waste_nothing_when_they_share_a_ledger() {
    let shared = |placement, load| {
        run(&ExecutorsScenario { managers: 30, ..short(Policy::Ours(placement), 30, load) })
    };
    let with_ledger = shared(Placement::Semaphore, 0.8);
    assert_eq!(with_ledger.wasted, 0);
    assert!(with_ledger.wait_mean_ms <= 4.0, "{with_ledger:?}");
    assert!(shared(Placement::Semaphore, 1.5).used >= 0.94);
    let without = shared(Placement::Pull, 0.8);
    assert!(without.wasted_per_task() > 1.0, "{without:?}");
    assert!(without.wait_mean_ms > 10.0 * with_ledger.wait_mean_ms);
}

#[test]
fn the_same_scenario_gives_the_same_report() {
    for placement in Placement::ALL {
        let scenario = ExecutorsScenario {
            tasks: 3_000,
            managers: 2,
            spread: TaskTime::Exponential,
            ..steady(Policy::Ours(placement), 3, 0.9)
        };
        assert_eq!(run(&scenario), run(&scenario));
        let other = ExecutorsScenario { seed: 2, ..scenario.clone() };
        assert_ne!(run(&scenario), run(&other));
    }
}
