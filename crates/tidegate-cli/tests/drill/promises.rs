//! Drills of the built-in scenarios in their short forms, with their own expectations.

use super::machine::Watch;
use super::program::{DISOWNED, Said, alone, drill};
use super::verdict::{Judge, TRIES, Try, Verdict};
use serde_json::Value;
use std::io::{self, Write as _};
use std::time::Duration;

/// Drills a scenario and fails with the missed expectations, the state of the machine and the figures.
///
/// An expectation that is missed while other processes disturb the machine is measured again. If every try was
/// disturbed, a line `NO VERDICT` says so for each expectation.
#[track_caller]
fn holds(name: &str) {
    let _alone = alone();
    let mut judge = Judge::default();
    for left in (0..TRIES).rev() {
        let watch = Watch::start();
        let said = drill(&[name, "--short", "--json"]);
        let machine = watch.end();
        let report = said.report();
        let checks = report["checks"].as_array().expect("checks").clone();
        assert!(!checks.is_empty(), "{name} expects nothing");
        let is_missed = checks.iter().any(|check| check["holds"] != true);
        assert_eq!(said.code, Some(i32::from(is_missed)), "{}", said.error);
        let late_ms = report["schedule"]["error_max_ms"].as_f64().unwrap_or(0.0);
        let others = format!("other processes used {:.0} % of the machine", machine.others * 100.0);
        let stood = format!("{others}, the longest wait for a CPU was {:?}", machine.stall);
        let one = Try {
            checks,
            machine,
            late: Duration::from_secs_f64(late_ms / 1e3),
            is_disowned: said.error.contains(DISOWNED),
        };
        println!("{name}: {stood}: {}", story(&said, &report));
        match judge.add(&one) {
            Verdict::Holds => return,
            Verdict::Broken(missed) => panic!("{name} missed {}; {stood}", missed.join(", ")),
            // Past the harness, which shows nothing of a test that did not fail.
            Verdict::Disturbed(missed) if left == 0 => {
                // One line for each expectation: the runner of the tests counts them.
                for expectation in missed {
                    let _ = writeln!(
                        io::stderr(),
                        "NO VERDICT on {name}, {expectation}: missed in {TRIES} tries, all of them \
                         disturbed; in the last one {stood}. Run it alone."
                    );
                }
            }
            Verdict::Disturbed(_) => {}
        }
    }
}

/// Figures of a drill in short: a failed test may print only a part of its output.
fn story(said: &Said, report: &Value) -> String {
    let lines = |of: &Value| -> String {
        of.as_array().into_iter().flatten().map(|line| format!("\n  {line}")).collect()
    };
    let tables: String =
        report["tables"].as_array().into_iter().flatten().map(|t| lines(&t["rows"])).collect();
    format!(
        "{}\n  schedule: {}\n  notes: {}{tables}\n{}",
        lines(&report["checks"]),
        report["schedule"],
        report["notes"],
        said.error
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
fn one_slow_upstream_of_eight_is_not_felt_at_the_others() {
    holds("slow_upstream");
}

#[test]
fn no_lower_priority_is_served_while_a_higher_one_is_refused() {
    holds("one_limit");
}
