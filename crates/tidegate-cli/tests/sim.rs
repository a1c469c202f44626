//! The command that compares laws and placements, and the page that shows what it prints.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::process::{Command, Output};

const DOCS: &str = include_str!("../../../docs/algorithms.md");

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
fn a_law_that_is_not_there_is_a_mistake_that_names_those_that_are() {
    let output = sim(&["--compare", "law=seed,reno"]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("\"reno\"") && message.contains("cubic and seed"), "{message}");
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
fn a_placement_that_is_not_there_is_a_mistake_that_names_those_that_are() {
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
