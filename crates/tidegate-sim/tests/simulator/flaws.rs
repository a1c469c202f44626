//! Mistakes planted on purpose: each is found, and shrunk to a smaller scenario that shows the same.

use tidegate_sim::gateway::Flaw;
use tidegate_sim::scenario::Scenario;
use tidegate_sim::shrink::{Edits, shrink};
use tidegate_sim::{Violation, simulate};

/// All priorities, two faults, limits that are reached, a queue that fills up.
const TEXT: &str = r#"
about = "A small gateway with too much to do."
duration_s = 12
gateway = { limits = { global = 60, high = 30, normal = 20, low = 10 }, limit = 4, queue = 16 }
upstreams = { count = 4, slots = 4, queue = 4 }

[[phase]]
name = "calm"
load = 0.5

[[phase]]
name = "busy"
load = 4

[[class]]
name = "control"
priority = "critical"
per_s = 20
service = { kind = "fixed", ms = 50 }

[[class]]
name = "people"
priority = "high"
share = 0.4
service = { kind = "exponential", ms = 100 }

[[class]]
name = "services"
share = 0.4
service = { kind = "exponential", ms = 100 }
deadline_ms = 500
retry = { times = 2, wait = "told", failures = true }

[[class]]
name = "batch jobs"
priority = "low"
share = 0.4
service = { kind = "exponential", ms = 100 }

[[fault]]
kind = "slow"
at = [1]
factor = 3
from_s = 2
until_s = 8

[[fault]]
kind = "dead"
at = [3]
from_s = 3
until_s = 5
"#;

/// The same with thresholds that are reached before the queue is full.
fn scenario(flaw: Flaw) -> Scenario {
    let with_thresholds = flaw == Flaw::LatchedBusy;
    let text = match with_thresholds {
        true => TEXT.replace("limit = 4, queue = 16 }", "active_requests = 4, queue = 160 }"),
        false => TEXT.to_owned(),
    };
    let text = match flaw {
        // Where each has a limit of its own, the one that all share is not reached.
        Flaw::ShedCritical => {
            text.replace("high = 30, normal = 20, low = 10", "high = 0, normal = 0, low = 0")
        }
        _ => text,
    };
    let text = text.replace(
        "global = 60",
        if flaw == Flaw::ShedCritical { "global = 20" } else { "global = 60" },
    );
    Scenario::read("planted", &text).expect("it is valid")
}

#[test]
fn without_a_flaw_nothing_breaks() {
    for flaw in Flaw::ALL {
        for seed in 1..=5 {
            let run = simulate(&scenario(flaw), seed, None);
            assert!(run.is_ok(), "as for {flaw}, seed {seed}: {run:?}");
        }
    }
}

#[test]
fn every_flaw_is_found_and_shrunk() {
    for flaw in Flaw::ALL {
        let scenario = scenario(flaw);
        let run = |scenario: &Scenario| simulate(scenario, 3, Some(flaw)).err();
        let violation = run(&scenario).unwrap_or_else(|| panic!("{flaw} was not found"));
        let replay = shrink(&scenario, &Edits::default(), &violation, run);
        assert_eq!(replay.violation.invariant, violation.invariant, "{flaw}");
        assert_eq!(run(&replay.edits.apply(&scenario)), Some(replay.violation.clone()), "{flaw}");
        assert!(replay.scenario.duration_s <= 8.0, "{flaw}: {:?}", replay.edits);
        assert!(replay.scenario.classes.len() <= 2, "{flaw}: {:?}", replay.edits);
        assert!(replay.scenario.faults.is_empty(), "{flaw}: {:?}", replay.edits);
        assert!(replay.tries <= 120, "{flaw}");
    }
}

#[test]
fn each_check_of_the_queue_can_fail() {
    for (flaw, check) in [
        (Flaw::UnboundedQueue, "longer than its bound"),
        (Flaw::UpsideDown, "no lower priority is dispatched while a higher one"),
        (Flaw::GhostWaiter, "every queued request was served"),
        (Flaw::LostWakeup, "no request waits while a slot for it is free"),
    ] {
        let violation = simulate(&scenario(flaw), 3, Some(flaw)).expect_err("it is found");
        assert!(violation.invariant.contains(check), "{flaw}: {violation}");
    }
}

/// The example of the command's help.
#[test]
fn a_shipped_scenario_shows_a_queue_that_is_upside_down() {
    let scenario =
        tidegate_sim::catalog::find("capacity_halves").expect("it ships").expect("valid");
    let violation = simulate(&scenario, 1, Some(Flaw::UpsideDown)).expect_err("it is found");
    assert!(violation.invariant.contains("while a higher one"), "{violation}");
}

/// Parts that were left out when the violation was found stay out, with the indexes of the file.
#[test]
fn what_is_shrunk_further_counts_from_the_whole() {
    let whole = scenario(Flaw::RacedLimit);
    let run = |scenario: &Scenario| simulate(scenario, 3, Some(Flaw::RacedLimit)).err();
    let begun = Edits { without_faults: vec![0], rate: 2.0, ..Edits::default() };
    let violation = run(&begun.apply(&whole)).expect("it is found with twice the load too");
    let replay = shrink(&whole, &begun, &violation, run);
    assert_eq!(replay.edits.without_faults, [0, 1]);
    assert_eq!(run(&replay.edits.apply(&whole)), Some(replay.violation.clone()));
    // The second fault begins after this: it is gone without being left out.
    let begun = Edits { until_s: Some(2.5), rate: 20.0, ..Edits::default() };
    let violation = run(&begun.apply(&whole)).expect("it is found early");
    let replay = shrink(&whole, &begun, &violation, run);
    assert_eq!(replay.edits.without_faults, [0]);
}

/// An edit that changes nothing does not count as smaller.
#[test]
fn where_there_are_no_rates_none_is_halved() {
    let pipeline = tidegate_sim::catalog::find("blocked_store").expect("it ships").expect("valid");
    let violation = Violation {
        invariant: "made up",
        found: String::new(),
        at: std::time::Duration::from_secs(1),
        events: 1,
    };
    let replay = shrink(&pipeline, &Edits::default(), &violation, |_| Some(violation.clone()));
    assert_eq!((replay.edits.rate, replay.edits.upstreams), (1.0, None));
    assert!(replay.scenario.faults.is_empty() && replay.scenario.duration_s < 1.0);
    let again = shrink(&pipeline, &replay.edits, &violation, |_| Some(violation.clone()));
    assert_eq!((again.tries, again.edits), (0, replay.edits), "nothing is left to leave out");
}

#[test]
fn what_is_left_out_is_said_as_flags() {
    let edits = Edits {
        until_s: Some(3.2),
        without_faults: vec![1],
        without_classes: vec!["batch jobs".to_owned(), "people".to_owned()],
        rate: 0.5,
        upstreams: Some(2),
    };
    let flags = " --until 3.2 --without-fault 1 --without-class 'batch jobs' \
                 --without-class people --rate 0.5 --upstreams 2";
    assert_eq!(edits.to_string(), flags);
    let left = edits.apply(&scenario(Flaw::RacedLimit));
    assert_eq!((left.duration_s, left.faults.len(), left.classes.len()), (3.2, 1, 2));
    assert_eq!(left.classes[1].share, Some(0.2));
    assert_eq!(left.upstreams.map(|upstreams| upstreams.count), Some(2));
    assert_eq!(left.phases.len(), 1, "the second begins after 6 s");
    assert_eq!(left.errors(), []);
}

#[test]
fn what_comes_before_the_end_is_as_it_was() {
    let whole = scenario(Flaw::RacedLimit);
    let cut = Edits { until_s: Some(8.0), ..Edits::default() }.apply(&whole);
    let arrivals = |scenario: &Scenario| {
        let all = tidegate_sim::arrivals::Arrivals::new(scenario, 5);
        all.take_while(|arrival| arrival.at.as_secs_f64() < 8.0).collect::<Vec<_>>()
    };
    assert_eq!(arrivals(&cut), arrivals(&whole));
}
