//! The same scenario gives the same report, byte for byte.

use std::time::Duration;
use tidegate_core::admission::Sharing;
use tidegate_sim::admission::{AdmissionScenario, Phase, ServiceTime, run};

/// One that uses everything there is.
fn scenario(seed: u64) -> AdmissionScenario {
    let phase = |load| Phase { duration: Duration::from_secs(5), load };
    AdmissionScenario {
        seed,
        sharing: Sharing::Borrow,
        phases: vec![phase(0.5), phase(4.0), phase(0.0), phase(1.0)],
        returns_max: 3,
        ..AdmissionScenario::steady([100.0, 500.0, 300.0, 200.0], Duration::ZERO)
    }
}

fn report(scenario: &AdmissionScenario) -> String {
    serde_json::to_string(&run(scenario)).expect("a report has no odd keys")
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    assert_eq!(report(&scenario(7)), report(&scenario(7)));
}

#[test]
fn another_seed_gives_another_report() {
    let (seven, eight) = (run(&scenario(7)), run(&scenario(8)));
    assert_ne!(seven.by_priority, eight.by_priority);
}

#[test]
fn one_priority_s_chance_does_not_shift_another_s() {
    let mut more_low = scenario(7);
    more_low.arrivals_per_s[3] = 250.0;
    let (base, more_low) = (run(&scenario(7)), run(&more_low));
    for (priority, report) in &base.by_priority {
        let same = report.offered == more_low.of(*priority).offered;
        assert_eq!(same, priority.index() != 3, "{priority}");
    }
}

#[test]
fn fixed_times_are_fixed() {
    let fixed = AdmissionScenario {
        service: ServiceTime::Fixed(Duration::from_millis(10)),
        ..AdmissionScenario::steady([0.0, 100.0, 0.0, 0.0], Duration::from_secs(10))
    };
    let report = run(&fixed);
    let high = report.of(tidegate_core::admission::MessagePriority::High);
    assert_eq!(high.admitted, high.offered);
    // 100 a second of 10 ms each: one at a time on average, and hardly ever ten.
    assert!((2..10).contains(&high.in_flight_max), "{}", high.in_flight_max);
}
