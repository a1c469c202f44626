//! The command that simulates scenarios and compares settings, and the page that shows what it prints.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod again;
mod check_flags;

use std::path::PathBuf;
use std::process::{Command, Output};

const DOCS: &str = include_str!("../../../../docs/algorithms.md");

fn sim(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.arg("sim").args(args).env_clear().output().unwrap()
}

#[test]
fn the_table_in_the_documentation_is_what_the_command_prints() {
    let output = sim(&["--compare", "law=seed,cubic"]);
    assert!(output.status.success());
    let table = String::from_utf8(output.stdout).unwrap();
    assert_eq!(table.lines().count(), 2 + 2 * 8, "{table}");
    assert!(DOCS.contains("tidegate sim --compare law=seed,cubic"));
    assert!(DOCS.contains(&table), "docs/algorithms.md has another table than:\n{table}");
}

#[test]
fn the_table_of_limits_in_the_documentation_is_what_the_command_prints() {
    const COMMAND: &str = "tidegate sim --compare limit=elastic,vegas,gradient2,aimd,static";
    let args: Vec<_> = COMMAND.split(' ').skip(2).collect();
    let output = sim(&args);
    assert!(output.status.success());
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.lines().count() > 30, "{table}");
    assert!(DOCS.contains(COMMAND));
    assert!(DOCS.contains(&table), "docs/algorithms.md has another table than:\n{table}");
}

#[test]
fn a_comparison_of_limits_has_scenarios_of_its_own() {
    let wrong: [&[&str]; 3] = [
        &["--compare", "limit=elastic", "low_flood"],
        &["--compare", "limit=elastic", "--short"],
        &["--compare", "limit=elastic,reno"],
    ];
    for args in wrong {
        assert_eq!(sim(args).status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn an_unknown_law_is_an_error_that_names_the_known_ones() {
    let output = sim(&["--compare", "law=seed,reno"]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("\"reno\"") && message.contains("cubic or seed"), "{message}");
}

#[test]
fn the_table_of_placements_in_the_documentation_is_what_the_command_prints() {
    const COMMAND: &str = "tidegate sim \
                           --compare placement=pull,optimistic,semaphore,queue,reserve,seed \
                           --executors 3,30 --tasks 50000";
    let args: Vec<_> = COMMAND.split(' ').skip(2).collect();
    let output = sim(&args);
    assert!(output.status.success());
    let table = String::from_utf8(output.stdout).unwrap();
    assert_eq!(table.lines().count(), 2 + 6 * 2, "{table}");
    let docs = DOCS.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(docs.contains(COMMAND), "docs/algorithms.md does not name {COMMAND}");
    assert!(DOCS.contains(&table), "docs/algorithms.md has another table than:\n{table}");
}

#[test]
fn the_same_seed_gives_the_same_table_and_another_another() {
    let run = |seed| {
        let args = ["--compare", "placement=queue,seed", "--tasks", "2000", "--seed", seed];
        sim(&args).stdout
    };
    assert_eq!(run("7"), run("7"));
    assert_ne!(run("7"), run("8"));
}

#[test]
fn a_placement_that_is_not_there_is_an_error_that_names_those_that_are() {
    let output = sim(&["--compare", "placement=push"]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(
        message.contains("\"push\"") && message.contains("queue, reserve and seed"),
        "{message}"
    );
    let output = sim(&["--compare", "placement=pull", "--load", "80"]);
    assert_eq!(output.status.code(), Some(2));
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A file with this scenario, for the test that is called so.
fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("sim-{name}.toml"));
    std::fs::write(&path, text).unwrap();
    path
}

#[test]
fn a_scenario_that_ships_is_run_judged_and_reported() {
    let run = || sim(&["critical_alone", "--short"]);
    let output = run();
    let report = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{report}{}", text(&output.stderr));
    assert!(report.contains("critical_alone") && report.contains("held"), "{report}");
    assert_eq!(output.stdout, run().stdout, "the same bytes");
}

#[test]
fn machines_get_json_and_people_a_page() {
    let page = std::env::temp_dir().join(format!("tidegate-sim-{}.html", std::process::id()));
    let path = page.to_str().unwrap();
    let output = sim(&["bimodal", "--short", "--seed", "1", "--json", "--html", path]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((report["seed"].as_u64(), report["mode"].as_str()), (Some(1), Some("sim")));
    assert!(report["checks"].as_array().unwrap().iter().all(|check| check["holds"] == true));
    let html = std::fs::read_to_string(&page).unwrap();
    std::fs::remove_file(&page).unwrap();
    assert!(html.contains("<html") && html.contains("bimodal"));
}

#[test]
fn a_range_that_is_missed_is_a_failure_that_says_which() {
    let whole = include_str!("../../../../scenarios/bimodal.toml");
    let file = file("missed", &whole.replace("max = 950", "max = 9"));
    let output = sim(&[file.to_str().unwrap(), "--short"]);
    let report = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{report}");
    assert!(report.contains("MISSED") && report.contains("latency_p99_ms"), "{report}");
}

#[test]
fn a_planted_flaw_is_found_and_its_replay_finds_it_again() {
    let output = sim(&["shared_limits", "--short", "--seed", "4", "--plant", "raced_limit"]);
    let found = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{found}");
    assert!(found.contains("a limit is never exceeded"), "{found}");
    let command = found.lines().last().unwrap().trim();
    let args: Vec<_> = command.split(' ').skip(2).collect();
    assert!(command.starts_with("tidegate sim ") && args.contains(&"--until"), "{command}");
    let again = sim(&args);
    assert_eq!(again.status.code(), Some(1), "{command}");
    assert!(text(&again.stdout).contains("a limit is never exceeded"), "{command}");
}

#[test]
fn many_seeds_are_summed_up() {
    let output = sim(&["critical_alone", "--short", "--seeds", "3"]);
    let summary = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{summary}");
    assert!(summary.contains("invariants violated in 0 of 3 runs"), "{summary}");
    assert!(summary.contains("held in 3 of 3: refused_share of priority:critical"), "{summary}");
}

#[test]
fn picks_and_sharing_stand_side_by_side() {
    let output = sim(&["--compare", "pick=power_of_two,round_robin", "slow_upstream", "--short"]);
    let table = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(table.lines().count(), 2 + 2 * 2, "{table}");
    let output = sim(&["--compare", "sharing=strict,borrow", "--short"]);
    let table = text(&output.stdout);
    assert_eq!(table.lines().count(), 2 + 2 * 3, "{table}");
    assert!(table.contains("borrow"), "{table}");
}

#[test]
fn what_is_no_scenario_is_an_error_that_names_those_that_are() {
    let cases: [&[&str]; 5] = [
        &["load_swep"],
        &[],
        &["load_sweep", "--without-fault", "0"],
        &["load_sweep", "--without-class", "nobody"],
        &["load_sweep", "--plant", "typo"],
    ];
    for args in cases {
        assert_eq!(sim(args).status.code(), Some(2), "{args:?}");
    }
    let told = text(&sim(&["load_swep"]).stderr);
    assert!(told.contains("low_flood") && told.contains("Did you mean load_sweep?"), "{told}");
    assert!(text(&sim(&["nowhere.toml"]).stderr).contains("can't read nowhere.toml"));
}

#[test]
fn the_list_explains_each_scenario_in_a_line() {
    let output = sim(&["--list"]);
    assert_eq!(output.status.code(), Some(0));
    let list = text(&output.stdout);
    let line = list.lines().find(|line| line.starts_with("executors_3x3 ")).unwrap();
    assert!(line.contains(" executors ") && line.contains("50 ms tasks"), "{line}");
}
