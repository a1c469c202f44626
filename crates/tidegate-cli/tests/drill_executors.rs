//! Executors drilled for real, by pull and by the seed's loop: what comes of both on the same arrivals.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use serde_json::Value;
use std::fs;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// The shipped scenario's short form is as long for each placement as both may take here together.
const SECONDS: &str = "5";

/// Load that shares its processor with other load measures that.
static ALONE: Mutex<()> = Mutex::new(());

fn drilled(name: &str, scenario: &str, seconds: &str) -> Value {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let path = std::env::temp_dir().join(format!("drill-{name}-{}.toml", std::process::id()));
    fs::write(&path, scenario).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.arg("drill").arg(&path).args(["--duration", seconds, "--json", "--no-progress"]);
    let output = command.env_clear().output().unwrap();
    fs::remove_file(&path).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"))
}

fn figure(report: &Value, what: &str, of: &str) -> f64 {
    let figures = report["figures"].as_array().unwrap();
    let found = figures.iter().find(|it| it["what"] == what && it["of"] == of);
    found.unwrap_or_else(|| panic!("{what} of {of} is not in {report}"))["value"].as_f64().unwrap()
}

#[test]
fn pull_does_what_it_is_asked_and_the_seeds_loop_sleeps() {
    let shipped = include_str!("../../../scenarios/executors_3x3.toml");
    // Without its expectations: those of the other placements can't be met.
    let world = shipped.split("[[expect]]").next().unwrap();
    let all = world.lines().find(|line| line.starts_with("placements")).unwrap();
    let text = world
        .replace(all, "placements = [\"pull\", \"seed\"]")
        .replace("settle_s = 10", "settle_s = 0.5");
    let report = drilled("pull-and-seed", &text, SECONDS);
    assert_eq!(report["mode"], "drill");
    assert_eq!(figure(&report, "lost", "pull"), 0.0);
    assert_eq!(figure(&report, "twice", "pull"), 0.0);
    assert_eq!(figure(&report, "wasted_per_task", "pull"), 0.0);
    // A busy machine makes both slower, and pull no worse than the other.
    let started = |of| figure(&report, "goodput_of_offered", of);
    let (pull, seed) = (started("pull"), started("seed"));
    assert!(pull > 0.0 && pull >= 2.0 * seed && seed <= 0.3, "{report}");
    let wait = |of| figure(&report, "wait_mean_ms", of);
    assert!(wait("pull") < wait("seed") / 2.0, "{report}");
    assert!(figure(&report, "wasted_per_task", "seed") > 1.0);
    let lines = report["charts"][0]["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 2);
}

#[test]
fn an_executor_that_is_really_killed_loses_no_task() {
    let text = r#"
        about = "One of two executors is killed and comes back."
        duration_s = 4
        executors = { executors = 2, task_ms = 100, share = 0.4, placements = ["pull"] }
        fault = [{ kind = "dead", from_s = 1, until_s = 1.5, at = [0] }]
        expect = [{ what = "lost", of = "pull", max = 0 }]
    "#;
    let report = drilled("killed", text, "4");
    assert_eq!(figure(&report, "lost", "pull"), 0.0);
    assert_eq!(figure(&report, "twice", "pull"), 0.0);
    assert!(report["checks"][0]["holds"].as_bool().unwrap());
}
