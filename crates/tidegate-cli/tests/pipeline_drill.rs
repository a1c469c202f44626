//! `tidegate drill` of the ingestion pipeline: on an ingestion of its own whose store stands still for a while,
//! and on one that runs elsewhere.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tidegate_server::config::Config;
use tidegate_server::ingest::{Flushed, Ingest};

/// Load that shares its processor with other load measures that.
static ALONE: Mutex<()> = Mutex::new(());

/// A folder that goes with its test. What a killed test has left is not in it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("pipeline-drill-{name}-{}", std::process::id());
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&path).expect("the folder of tests can be written to");
        Self(path)
    }

    /// Drills, with what a drill keeps for a while in here too.
    fn drill(&self, args: &[&str]) -> Output {
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.arg("drill").args(args).env_clear().env("TMPDIR", &self.0);
        command.output().expect("it starts")
    }

    fn scenario(&self, text: &str) -> String {
        let path = self.0.join("scenario.toml");
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn report(output: &Output) -> Value {
    let error = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|wrong| panic!("{wrong}: {error}"))
}

/// Check of this figure, if there is one.
fn check<'a>(report: &'a Value, what: &str) -> Option<&'a Value> {
    report["checks"].as_array().expect("a list").iter().find(|check| check["what"] == what)
}

fn figure(report: &Value, what: &str) -> f64 {
    let figures = report["figures"].as_array().expect("a list");
    let found = figures.iter().find(|f| f["what"] == what && f["phase"].is_null());
    found.and_then(|found| found["value"].as_f64()).unwrap_or_else(|| panic!("no {what}"))
}

/// The shipped scenario with a store that stands still for 5.5 s of its short form, and not for 2.5: windows have
/// to be seen at their least meanwhile, by a process that may not run for a second of it. That this takes no more
/// than 3.4 s is for the simulator to say, which has no machine.
fn longer() -> String {
    let mut text = include_str!("../../../scenarios/blocked_store.toml").to_owned();
    for (shipped, here) in [
        ("\nduration_s = 40\n", "\nduration_s = 56\n"),
        ("\nduration_s = 10\n", "\nduration_s = 14\n"),
        ("part = 6\n", "part = 10\n"),
        ("until_s = 28\n", "until_s = 40\n"),
        ("max = 3.4\n", "max = 5.5\n"),
    ] {
        assert_eq!(text.matches(shipped).count(), 1, "{shipped:?} in {text}");
        text = text.replace(shipped, here);
    }
    text
}

#[test]
fn a_real_store_that_stands_still_loses_nothing_and_flows_again() {
    let folder = Folder::new("blocked");
    let path = folder.scenario(&longer());
    let output = folder.drill(&[&path, "--short", "--json", "--no-progress"]);
    let report = report(&output);
    // A busy machine may take from the store what is its due; what is promised whatever the machine is this.
    for what in ["lost", "twice", "windows_least_s", "recovery_s", "held_of_budget"] {
        let check = check(&report, what).unwrap_or_else(|| panic!("{what} is not judged"));
        assert_eq!(check["holds"], true, "{check}");
    }
    // Its own ingestion is gone: who runs it again gets another.
    assert_eq!(report["target"], Value::Null);
    assert_eq!(report["command"], format!("tidegate drill {path} --seed 1 --short"));
    let due = report["schedule"]["due"].as_u64().unwrap();
    assert!((80_000..90_000).contains(&due), "1.5 × 4 s and 0.25 × 10 s of 10,000: {due}");
    assert!(figure(&report, "stored_of_possible") > 0.7, "{}", report["figures"]);
    // While nothing was stored, nothing was acknowledged, and senders were told to hold back.
    let chart = |title: &str| {
        let charts = report["charts"].as_array().unwrap();
        let chart = charts.iter().find(|chart| chart["title"].as_str().unwrap().contains(title));
        chart.unwrap_or_else(|| panic!("no chart of {title}"))["lines"].clone()
    };
    let points = |line: &Value| -> Vec<(f64, f64)> {
        let of = |point: &Value| Some((point[0].as_f64()?, point[1].as_f64()?));
        line["points"].as_array().unwrap().iter().filter_map(of).collect()
    };
    let stored = points(&chart("offered and stored")[1]);
    assert!(stored.contains(&(5.0, 0.0)), "{stored:?}");
    let told = points(&chart("senders are told")[0]);
    assert!(told.iter().any(|(at_s, level)| (5.5..10.0).contains(at_s) && *level == 3.0));
    let left = std::fs::read_dir(&folder.0).unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with("tidegate-drill-")
    });
    assert_eq!(left.count(), 0, "its folder is gone");
}

/// An ingestion as it ships, and its folder.
struct Elsewhere {
    ingest: Ingest,
    folder: Folder,
}

impl Elsewhere {
    fn start() -> Self {
        let folder = Folder::new("elsewhere");
        let mut config = Config::from_toml("").expect("the defaults are valid");
        config.ingest.frames_address.set_port(0);
        config.ingest.lines_address.set_port(0);
        config.ingest.store = folder.0.join("store").to_string_lossy().into_owned();
        Self { ingest: Ingest::start(&config).expect("it starts"), folder }
    }
}

#[test]
fn an_ingestion_that_runs_elsewhere_is_drilled_without_faults() {
    let elsewhere = Elsewhere::start();
    let text = r#"
        about = "A little of everything."
        duration_s = 2
        pipeline = { store_per_s = 4000, share = 0.5, senders = 2, batch_records = 50 }
        fault = [{ kind = "blocked", stage = "store", from_s = 1, until_s = 2 }]
        expect = [
            { what = "lost", max = 0 },
            { what = "twice", max = 0 },
            { what = "stored_of_offered", min = 0.5 },
            { what = "windows_least_s", max = 3.4 },
        ]
    "#;
    let path = elsewhere.folder.scenario(text);
    let view = elsewhere.ingest.view();
    let target = format!("http://{}", view.frames_address());
    let args = [&path, "--target", &target, "--json", "--no-progress"];
    let output = elsewhere.folder.drill(&args);
    let report = report(&output);
    assert_eq!(output.status.code(), Some(0), "{report}");
    assert_eq!(check(&report, "lost").unwrap()["holds"], true);
    assert!(check(&report, "twice").is_none() && check(&report, "windows_least_s").is_none());
    let notes = report["notes"].to_string();
    assert!(notes.contains("was not injected"), "{notes}");
    assert_eq!(report["faults"].as_array().unwrap().len(), 0);
    let command = report["command"].as_str().unwrap();
    assert!(command.contains(&format!("--target {target}")), "{command}");
    let due = report["schedule"]["due"].as_u64().unwrap();
    assert!((3_500..4_500).contains(&due), "{due}");
    assert_eq!(view.stats().counts.records_stored, due);
    assert_eq!(elsewhere.ingest.shutdown(Duration::from_secs(10)), Flushed::All);
}

#[test]
fn where_nobody_takes_frames_it_says_so() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let target = format!("http://{free}");
    let args = ["blocked_store", "--short", "--target", &target, "--no-progress"];
    let output = Folder::new("nobody").drill(&args);
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("does not accept frames"), "{error}");
}
