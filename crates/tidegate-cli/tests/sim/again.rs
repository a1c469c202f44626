//! The command in a report repeats the run.

use super::{file, sim, text};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};

/// Limits that are reached, and three faults that have nothing to do with it.
fn with_faults() -> String {
    let whole = include_str!("../../../../scenarios/shared_limits.toml");
    let fault = |upstream: u32| {
        format!(
            "\n[[fault]]\nkind = \"slow\"\nat = [{upstream}]\nfactor = 1.1\nfrom_s = 1\nuntil_s = 50\n"
        )
    };
    (0..3).fold(whole.to_owned(), |text, upstream| text + &fault(upstream))
}

/// Runs a command as a shell does.
fn typed(command: &str) -> Output {
    let binary = Path::new(env!("CARGO_BIN_EXE_tidegate"));
    let command = command.strip_prefix("tidegate ").unwrap();
    let line = format!("exec '{}' {command}", binary.display());
    Command::new("sh").args(["-c", &line]).output().unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stdout)))
}

#[test]
fn the_command_of_a_report_gives_the_same_report() {
    let path = file("it's my own", include_str!("../../../../scenarios/bimodal.toml"));
    let path = path.to_str().unwrap();
    let args = [path, "--short", "--until", "4", "--rate", "0.5", "--upstreams", "4", "--json"];
    let first = json(&sim(&args));
    let command = first["command"].as_str().unwrap();
    for part in ["'\\''", "--short", "--until 4", "--rate 0.5", "--upstreams 4", "--seed "] {
        assert!(command.contains(part), "{part}: {command}");
    }
    assert!(!command.contains("--json"), "where it goes does not matter: {command}");
    let second = json(&typed(&format!("{command} --json")));
    assert_eq!(first, second);
}

#[test]
fn the_page_has_it_too_wherever_it_is_written() {
    let page = |name: &str| {
        let page = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let path = page.to_str().unwrap();
        let output = sim(&["critical_alone", "--short", "--seed", "3", "--html", path]);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        std::fs::read_to_string(&page).unwrap()
    };
    let html = page("sim-one.html");
    assert!(html.contains("<code>tidegate sim critical_alone --seed 3 --short</code>"));
    assert_eq!(html, page("sim-other.html"));
}

#[test]
fn a_replay_counts_faults_as_the_file_does() {
    let path = file("with faults", &with_faults());
    let path = path.to_str().unwrap();
    let left_out = ["--without-fault", "0", "--without-fault", "1"];
    let args = [&[path, "--short", "--seed", "4", "--plant", "raced_limit"], &left_out[..]];
    let output = sim(&args.concat());
    let found = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{found}");
    let command = found.lines().last().unwrap().trim();
    let all = "--without-fault 0 --without-fault 1 --without-fault 2";
    assert!(command.contains(all), "{command}");
    assert!(command.contains("with faults.toml' "), "{command}");
    let again = typed(command);
    assert_eq!(again.status.code(), Some(1), "{command}\n{}", text(&again.stderr));
    assert!(text(&again.stdout).contains("a limit is never exceeded"), "{command}");
}

#[test]
fn what_broke_is_json_for_machines_with_the_replay_and_its_command() {
    let args = ["shared_limits", "--short", "--seed", "4", "--plant", "raced_limit", "--json"];
    let output = sim(&args);
    assert_eq!(output.status.code(), Some(1));
    let told = json(&output);
    assert_eq!(told["violation"]["invariant"], "a limit is never exceeded");
    assert!(told["replay"]["duration_s"].as_f64().is_some_and(|s| s < 12.0), "{told}");
    let command = told["command"].as_str().unwrap();
    let again = json(&typed(&format!("{command} --json")));
    assert_eq!(again["violation"], told["replay"]["violation"], "{command}");
}

#[test]
fn of_many_seeds_the_first_that_broke_is_replayed_for_machines_too() {
    let args = ["shared_limits", "--short", "--seeds", "2", "--plant", "raced_limit", "--json"];
    let output = sim(&args);
    assert_eq!(output.status.code(), Some(1));
    let told = json(&output);
    let first = &told["violations"][0];
    assert!(first["command"].as_str().is_some_and(|command| command.contains("--seed ")));
    assert_eq!(told["shortest"]["seed"], first["seed"]);
    let command = told["shortest"]["command"].as_str().unwrap();
    assert_eq!(typed(command).status.code(), Some(1), "{command}");
}
