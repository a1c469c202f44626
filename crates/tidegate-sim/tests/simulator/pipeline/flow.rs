//! Findings of the flow recorder for runs with known results.

use std::time::Duration;
use tidegate_core::signal::BackpressureLevel;
use tidegate_sim::pipeline::{FlowPicture, FlowRecorder};
use tidegate_sim::report::Findings;
use tidegate_sim::scenario::{Scenario, What};

const TEXT: &str = r#"
    about = "A thousand records a second, and a store that stands still from 4 s to 6 s."
    duration_s = 20
    pipeline = { store_per_s = 2000, share = 0.5 }
    fault = [{ kind = "blocked", stage = "store", from_s = 4, until_s = 6 }]
"#;

/// Returns the findings when one record is offered each millisecond, and stored as `per_ms` says.
fn found(window: impl Fn(u64) -> u64, per_ms: impl Fn(u64) -> u64) -> Findings {
    let scenario = Scenario::read("known", TEXT).unwrap_or_else(|error| panic!("{error}"));
    let mut recorder = FlowRecorder::new(&scenario);
    let (mut offered, mut stored) = (0, 0);
    for at_ms in 0..20_000 {
        let at = Duration::from_millis(at_ms);
        recorder.offered(at, 1);
        offered += 1;
        for _ in 0..per_ms(at_ms) {
            if stored < offered {
                recorder.stored(at, Duration::from_millis(stored), 1);
                stored += 1;
            }
        }
        if at_ms % 100 == 0 {
            recorder.look(&FlowPicture {
                at,
                windows: [window(at_ms); 5],
                queued: [0; 5],
                held_bytes: 1 << 20,
                budget_bytes: 4 << 20,
                window_least: 1_024,
                level: BackpressureLevel::None,
            });
        }
    }
    recorder.conclude(3, Some(2))
}

fn is_blocked(at_ms: u64) -> bool {
    (4_000..6_000).contains(&at_ms)
}

fn value(findings: &Findings, what: What) -> f64 {
    findings.value(what, "all", None).unwrap_or_else(|| panic!("no {what}"))
}

#[test]
fn a_store_that_catches_up_has_recovered_when_nothing_waits_any_more() {
    let cut = |at_ms| if at_ms < 5_300 { 4_096 } else { 1_024 };
    let findings = found(cut, |at_ms| if is_blocked(at_ms) { 0 } else { 2 });
    // 2,000 wait at 6 s, 1,000 a second are caught up with, and 500 are what a stage may hold.
    assert_eq!(value(&findings, What::RecoveryS), 1.0);
    assert!((value(&findings, What::WindowsLeastS) - 1.3).abs() < 1e-9);
    assert!(value(&findings, What::StoredOfPossible) > 0.99);
    assert_eq!(value(&findings, What::StoredOfOffered), 1.0);
    assert_eq!(value(&findings, What::StoredOfCapacity), 0.5);
    assert_eq!(value(&findings, What::HeldOfBudget), 0.25);
    assert_eq!((value(&findings, What::Lost), value(&findings, What::Twice)), (3.0, 2.0));
    // A tenth of the records and more waited for up to 2 s.
    let lag_ms = value(&findings, What::LagP99Ms);
    assert!((1_850.0..=2_002.0).contains(&lag_ms), "{lag_ms}");
}

#[test]
fn a_store_that_stays_behind_has_not_recovered() {
    let findings = found(|_| 2_048, |at_ms| u64::from(!is_blocked(at_ms)));
    assert_eq!(value(&findings, What::RecoveryS), f64::INFINITY, "2,000 wait for ever");
    assert_eq!(value(&findings, What::WindowsLeastS), f64::INFINITY);
    let possible = value(&findings, What::StoredOfPossible);
    assert!((0.89..=0.91).contains(&possible), "{possible}");
}

#[test]
fn a_store_that_is_slow_for_longer_than_its_fault_recovers_when_it_does() {
    let findings = found(|_| 1_024, |at_ms| if (4_000..9_000).contains(&at_ms) { 0 } else { 4 });
    // 5,000 wait at 9 s, and 3,000 a second are caught up with.
    assert_eq!(value(&findings, What::RecoveryS), 4.0);
}
