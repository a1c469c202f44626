//! `tidegate tariff check`: the real binary on real files.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const EXAMPLE: &str = "deploy/tariffs.example.toml";

fn run(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(["tariff", "check"])
        .args(args)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        .env_clear()
        .output()
        .unwrap()
}

#[track_caller]
fn ok(args: &[&str]) -> String {
    let output = run(args);
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), err.as_str()), (Some(0), ""));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn fails(args: &[&str], code: i32, says: &[&str]) {
    let output = run(args);
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(code), true), "{err}");
    for part in says {
        assert!(err.contains(part), "{part:?} is not in: {err}");
    }
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// The lines of an example's answer, their columns separated by one space.
fn steps(out: &str) -> Vec<String> {
    let steps = out.lines().filter(|line| line.starts_with("  "));
    steps.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

#[test]
fn a_right_file_is_shown_as_a_table() {
    let out = ok(&[EXAMPLE]);
    assert!(out.starts_with("ok: deploy/tariffs.example.toml: 4 tariffs"), "{out}");
    let gpu = out.lines().find(|line| line.starts_with("gpu ")).unwrap();
    let row = "gpu * gpu.seconds 0.0004 … 0.0007 EUR from 2026-01-01 Europe/Berlin mon-fri 07:00-20:00 none";
    assert_eq!(gpu.split_whitespace().collect::<Vec<_>>().join(" "), row);
    assert!(out.contains("3 a month") && out.contains("2026-01-01 until 2027-01-01"), "{out}");
}

#[test]
fn an_example_shows_tariff_window_and_tiers() {
    let used = ["--meter", "tokens.output", "--quantity", "20000000", "--used", "90000000"];
    let out = ok(&[&[EXAMPLE, "--tenant", "globex", "--at", "2026-06-15"], &used[..]].concat());
    let expected = [
        "tariff output tokens",
        "window none: the tariff's own price",
        "period 2026-06-01 00:00:00 +00:00 until 2026-07-01 00:00:00 +00:00, used before: 90000000",
        "tier 1 10000000 × 0.0000006 = 6",
        "tier 2 10000000 × 0.0000005 = 5",
        "amount 11 USD",
    ];
    assert_eq!(steps(&out), expected);
    // Without an offset the time is by the clocks in Berlin, where it is summer.
    let gpu = ["--tenant", "t", "--meter", "gpu.seconds", "--quantity", "3600", "--at"];
    let out = ok(&[&[EXAMPLE], &gpu[..], &["2026-06-15T19:59"]].concat());
    assert!(out.contains("2026-06-15 19:59:00 +02:00"), "{out}");
    assert!(
        out.contains("working hours (mon-fri 07:00-20:00)") && out.contains("2.52 EUR"),
        "{out}"
    );
    let out = ok(&[&[EXAMPLE], &gpu[..], &["2026-06-15T18:00:00Z"]].concat());
    assert!(out.contains("1.44 EUR"), "{out}");
}

#[test]
fn an_example_that_nothing_fits_says_why() {
    let out = ok(&[EXAMPLE, "--tenant", "t", "--meter", "disk", "--quantity", "-5"]);
    assert_eq!(steps(&out), ["fallback unknown_meter: fallback", "amount 0 USD"]);
}

#[test]
fn json_has_everything_and_no_floats() {
    let args = ["--tenant", "acme", "--meter", "tokens.output", "--quantity", "1000000", "--json"];
    let out = ok(&[&[EXAMPLE, "--at", "2026-06-15T00:00:00Z"], &args[..]].concat());
    let told: Value = serde_json::from_str(&out).unwrap();
    assert!(told["ok"] == true && told["warnings"].is_array(), "{told}");
    assert_eq!(told["tariffs"][1]["tiers"][0]["up_to"], "100000000");
    assert_eq!(told["tariffs"][2]["windows"][0]["from"], "07:00");
    let example = &told["example"];
    assert_eq!((&example["tariff"], &example["amount"]), (&"acme 2026".into(), &"0.35".into()));
    assert_eq!(example["fallback"], Value::Null);
}

#[test]
fn warnings_are_shown_and_are_no_failure() {
    let text = "[[tariff]]\nname = \"a\"\ntenants = [\"x\"]\nmeter = \"m\"\neffective_until = 2020-01-01\nprice = 1\n";
    let path = file("warned.toml", text);
    let out = ok(&[path.to_str().unwrap()]);
    let warnings: Vec<_> = out.lines().filter(|line| line.starts_with("warning: ")).collect();
    assert_eq!(warnings.len(), 2, "{out}");
    assert!(warnings[0].contains("warned.toml:3: tariff \"a\": only \"x\" can use \"m\""), "{out}");
    assert!(
        warnings[1].contains("warned.toml:5: tariff \"a\": it is over since 2020-01-01"),
        "{out}"
    );
}

#[test]
fn a_wrong_file_is_2_with_all_mistakes() {
    let path = file(
        "wrong.toml",
        "[[tariff]]\nname = \"a\"\ntenats = \"*\"\nmeter = \"m\"\nprice = 0.06\n",
    );
    let path = path.to_str().unwrap();
    let says = [
        "3 errors in the tariffs:",
        "wrong.toml:1: tariff \"a\": tenants is missing",
        "wrong.toml:3: tariff \"a\": the key \"tenats\" is unknown",
        "did you mean tenants?",
        "wrong.toml:5: tariff \"a\", price: 0.06 is a binary float",
        "put it in quotes: \"0.06\"",
    ];
    fails(&[path], 2, &says);
    let output = run(&[path, "--json"]);
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), told["ok"].as_bool()), (Some(2), Some(false)));
    assert_eq!(told["errors"][2]["line"], 5);
}

#[test]
fn what_was_typed_wrong_is_2_and_no_file_is_1() {
    fails(&["no-such-file.toml"], 1, &["no-such-file.toml"]);
    fails(&[EXAMPLE, "--tenant", "t"], 2, &["--meter", "--quantity"]);
    fails(&[EXAMPLE, "--at", "2026-01-01"], 2, &["--quantity"]);
    let typed = [EXAMPLE, "--tenant", "t", "--meter", "m", "--quantity"];
    fails(&[&typed[..], &["much"]].concat(), 2, &["--quantity", "not a number"]);
    fails(&[&typed[..], &["1", "--at", "noon"]].concat(), 2, &["--at", "no time"]);
}
