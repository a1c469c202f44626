//! Scenarios of gateways in virtual time: the same bytes for the same seed, and what each of them expects.

use tidegate_sim::report::{Report, html, text};
use tidegate_sim::scenario::{Mode, Scenario, World};
use tidegate_sim::{catalog, gateway, simulate};

/// Every scenario of a gateway that ships.
fn scenarios() -> impl Iterator<Item = Scenario> {
    let read = |(name, _)| catalog::find(name).expect("it ships").expect("it is valid");
    let is_gateway = |scenario: &Scenario| matches!(scenario.world(), Some(World::Gateway(_)));
    catalog::shipped().map(read).filter(is_gateway)
}

fn report(scenario: &Scenario, seed: u64) -> Report {
    let findings = simulate(scenario, seed, None)
        .unwrap_or_else(|violation| panic!("{} with seed {seed}: {violation}", scenario.name));
    Report::new(scenario, Mode::Sim, seed, findings)
}

fn assert_holds(scenario: &Scenario) {
    let report = report(scenario, scenario.seed);
    let missed: Vec<_> = report.missed().map(ToString::to_string).collect();
    let name = &scenario.name;
    assert!(missed.is_empty(), "{name} over {} s:\n{}", scenario.duration_s, missed.join("\n"));
}

#[test]
fn every_scenario_holds() {
    scenarios().for_each(|scenario| assert_holds(&scenario));
}

#[test]
fn every_short_form_holds() {
    for scenario in scenarios() {
        let short = scenario.short.expect("tests run it");
        // Two have more phases than others, and one needs many requests until their mean is certain.
        let longest_s = match scenario.name.as_str() {
            "load_sweep" | "zero_config" => 44.0,
            "bimodal" => 30.0,
            _ => 24.0,
        };
        assert!(short.duration_s <= longest_s, "{}", scenario.name);
        assert_holds(&scenario.shortened());
    }
}

#[test]
fn no_invariant_breaks_with_twenty_seeds() {
    for scenario in scenarios() {
        // Short enough for twenty of each, long enough for every phase and fault.
        let short = scenario.lasting(6.0);
        for seed in 1..=20 {
            if let Err(violation) = simulate(&short, seed, None) {
                panic!("{} with seed {seed}: {violation}", scenario.name);
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_gives_others() {
    let scenario = catalog::find("retry_storm").expect("it ships").expect("it is valid");
    let scenario = scenario.shortened();
    let bytes = |seed| {
        let report = report(&scenario, seed);
        let json = serde_json::to_string(&report).expect("a report has no odd keys");
        [json, text::render(&report), html::page(&report)]
    };
    assert_eq!(bytes(7), bytes(7));
    assert_ne!(bytes(7)[0], bytes(8)[0]);
}

#[test]
fn a_scenario_without_a_gateway_has_nothing_to_simulate_here() {
    let text = r#"
        about = "Records."
        duration_s = 1
        pipeline = { store_per_s = 1000 }
    "#;
    let scenario = Scenario::read("records", text).expect("it is valid");
    let findings = gateway::simulate(&scenario, 1, None).expect("nothing can break");
    assert!(findings.figures.is_empty());
}
