//! What Tidegate promises, on the real thing: each scenario in its short form, with its own expectations.

use super::program::{Said, alone, drill};
use serde_json::Value;

/// Drills a scenario and fails with all that was missed, what the machine did, and what was measured.
#[track_caller]
fn holds(name: &str) {
    let _alone = alone();
    let said = drill(&[name, "--short", "--json"]);
    let report = said.report();
    let checks = report["checks"].as_array().expect("checks");
    assert!(!checks.is_empty(), "{name} expects nothing");
    for check in checks {
        println!("{name}: {check}");
    }
    let missed: Vec<&Value> = checks.iter().filter(|check| check["holds"] != true).collect();
    assert!(missed.is_empty() && said.code == Some(0), "{}", story(&said, &report, &missed));
}

fn story(said: &Said, report: &Value, missed: &[&Value]) -> String {
    let tables = serde_json::to_string_pretty(&report["tables"]).unwrap_or_default();
    format!(
        "missed: {missed:#?}\nschedule: {}\nnotes: {}\n{tables}\n{}",
        report["schedule"], report["notes"], said.error
    )
}

#[test]
fn goodput_stays_from_capacity_to_ten_times_of_it() {
    holds("load_sweep");
}

#[test]
fn a_flood_of_low_is_not_felt_above_it() {
    holds("low_flood");
}

#[test]
fn a_storm_of_retries_ends_with_its_cause() {
    holds("retry_storm");
}

#[test]
fn one_slow_worker_of_eight_is_not_felt_at_the_others() {
    holds("slow_destination");
}
