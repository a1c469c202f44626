//! The scenarios of the pipeline that ship, simulated: they hold, whatever the seed, and give the same bytes
//! again.

use tidegate_sim::catalog;
use tidegate_sim::pipeline::simulate;
use tidegate_sim::report::{Findings, Report};
use tidegate_sim::scenario::{Mode, Scenario};

const NAMES: [&str; 5] =
    ["square_wave", "sawtooth", "random_bursts", "blocked_store", "slow_store"];

fn shipped(name: &str) -> Scenario {
    catalog::find(name).expect("it ships").expect("what ships can be read")
}

fn simulated(scenario: &Scenario, seed: u64) -> Findings {
    simulate(scenario, seed)
        .unwrap_or_else(|violation| panic!("{} with seed {seed}: {violation}", scenario.name))
}

fn report(scenario: &Scenario, seed: u64) -> Report {
    Report::new(scenario, Mode::Sim, seed, simulated(scenario, seed))
}

fn missed(report: &Report) -> Vec<String> {
    report.missed().map(ToString::to_string).collect()
}

#[test]
fn what_ships_holds_in_full_and_in_short() {
    for name in NAMES {
        let scenario = shipped(name);
        let full = report(&scenario, scenario.seed);
        assert_eq!(missed(&full), [""; 0], "{name}");
        assert!(full.findings.decisions > 10_000, "{name}: {}", full.findings.decisions);
        let short = report(&scenario.shortened(), scenario.seed);
        assert_eq!(missed(&short), [""; 0], "{name}, short");
    }
}

#[test]
fn twenty_seeds_violate_nothing_and_hold() {
    for name in NAMES {
        let scenario = shipped(name);
        for seed in 1..=20 {
            assert_eq!(missed(&report(&scenario, seed)), [""; 0], "{name} with seed {seed}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_others() {
    for name in NAMES {
        let scenario = shipped(name).shortened();
        let json =
            |seed| serde_json::to_string(&report(&scenario, seed)).expect("it is plain data");
        assert_eq!(json(7), json(7), "{name}");
        assert_ne!(json(7), json(8), "{name}");
    }
}
