//! Scenarios of executors: what ships holds, what goes wrong loses nothing, and what is done wrong is found.

use tidegate_sim::catalog;
use tidegate_sim::executors::{ExecutorFlaw, simulate, simulate_flawed};
use tidegate_sim::report::{Findings, Report};
use tidegate_sim::scenario::{Mode, Scenario, What};

fn short(name: &str) -> Scenario {
    let found = catalog::find(name).expect("it ships");
    found.expect("it can be read").shortened()
}

/// The same with these placements alone.
fn only(scenario: &Scenario, placements: &[&str]) -> Scenario {
    let mut less = scenario.clone();
    if let Some(world) = &mut less.executors {
        world.placements.retain(|policy| placements.contains(&&*policy.to_string()));
    }
    less.expectations.retain(|expected| placements.contains(&&*expected.of));
    less
}

fn run(scenario: &Scenario, seed: u64) -> Findings {
    simulate(scenario, seed)
        .unwrap_or_else(|violation| panic!("{} with seed {seed}: {violation}", scenario.name))
}

fn assert_holds(scenario: &Scenario) {
    let report = Report::new(scenario, Mode::Sim, scenario.seed, run(scenario, scenario.seed));
    assert!(!report.checks.is_empty());
    let missed: Vec<_> = report.missed().map(ToString::to_string).collect();
    assert!(missed.is_empty(), "{}: {missed:#?}", scenario.name);
}

#[test]
fn three_executors_do_as_expected() {
    assert_holds(&short("executors_3x3"));
}

#[test]
fn thirty_executors_do_as_expected() {
    assert_holds(&only(&short("executors_30x30"), &["pull", "reserve", "seed"]));
}

#[test]
fn three_hundred_executors_do_as_expected() {
    assert_holds(&only(&short("executors_300x300"), &["pull", "seed"]));
}

#[test]
fn the_seeds_loop_loses_and_repeats_where_ours_do_not() {
    let mut chaos = short("executors_chaos");
    assert_holds(&chaos);
    if let Some(world) = &mut chaos.executors {
        world.placements = vec!["seed".parse().unwrap()];
    }
    let found = run(&chaos, 1);
    for what in [What::Lost, What::Twice] {
        assert!(found.value(what, "seed", None).unwrap() > 0.0, "{what}");
    }
}

#[test]
fn whatever_dies_no_task_is_lost_and_no_attempt_is_started_twice() {
    let chaos = short("executors_chaos");
    for seed in 1..=20 {
        let found = run(&chaos, seed);
        for policy in &chaos.executors.as_ref().unwrap().placements {
            let of = policy.to_string();
            for what in [What::Lost, What::Twice] {
                assert_eq!(found.value(what, &of, None), Some(0.0), "{what} of {of}, seed {seed}");
            }
        }
    }
}

#[test]
fn one_manager_leaves_no_slot_idle_once_the_faults_are_over() {
    // The bound on idle slots is checked where one manager pulls.
    let mut chaos = only(&short("executors_chaos"), &["pull"]);
    chaos.duration_s *= 2.0;
    if let Some(world) = &mut chaos.executors {
        world.managers = 1;
        // Somebody waits nearly always.
        world.share = 0.9;
    }
    for fault in &mut chaos.faults {
        fault.at.retain(|number| *number == 0 || fault.kind.to_string() != "manager_dead");
    }
    for seed in 1..=5 {
        run(&chaos, seed);
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_others() {
    let chaos = short("executors_chaos");
    let bytes = |seed| serde_json::to_string(&run(&chaos, seed)).unwrap();
    assert_eq!(bytes(3), bytes(3));
    assert_ne!(bytes(3), bytes(4));
}

#[test]
fn what_others_did_wrong_is_found() {
    let chaos = short("executors_chaos");
    for (flaw, invariant) in [
        (ExecutorFlaw::SendsAgain, "at most one start an attempt"),
        (ExecutorFlaw::GivesBackTwice, "running + reserved ≤ slots"),
        (ExecutorFlaw::ForgetsTombstones, "a cancelled attempt is not started"),
        (ExecutorFlaw::ReusesNumbers, "at most one start an attempt"),
    ] {
        let violations =
            (1..=40).filter_map(|seed| simulate_flawed(&chaos, seed, Some(flaw)).err());
        let first = violations.into_iter().next();
        let first = first.unwrap_or_else(|| panic!("{flaw:?} is not found"));
        assert_eq!(first.invariant, invariant, "{flaw:?}: {first}");
        assert!(first.events > 0);
    }
}

#[test]
fn waves_and_phases_are_followed() {
    let text = r#"
        about = "A calm and a flood."
        duration_s = 20
        executors = { executors = 4, task_ms = 20, share = 0.5, placements = ["pull"] }
        phase = [{ name = "calm" }, { name = "flood", load = 3 }]
    "#;
    let scenario = Scenario::read("two", text).unwrap();
    let found = run(&scenario, 1);
    let used = |phase| found.value(What::Used, "pull", Some(phase)).unwrap();
    assert!((0.4..0.6).contains(&used("calm")), "{}", used("calm"));
    assert!(used("flood") > 0.9, "{}", used("flood"));
    let wait = |phase| found.value(What::WaitMeanMs, "pull", Some(phase)).unwrap();
    assert!(wait("flood") > 100.0 * wait("calm"), "the flood is half as much again as can be done");
    assert_eq!(found.value(What::Lost, "pull", None), Some(0.0));
}
