//! The command and what it said.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Load that shares its processor with other load measures that.
static ALONE: Mutex<()> = Mutex::new(());

/// Warning of the generator that its own delays affect the figures.
pub const DISOWNED: &str = "did not keep its own schedule";

/// Output of a drill.
pub struct Said {
    pub code: Option<i32>,
    pub out: String,
    pub error: String,
}

pub fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.arg("drill").args(args).env_clear().stdin(Stdio::null());
    command
}

pub fn drill(args: &[&str]) -> Said {
    Said::from(command(args).output().expect("the binary starts"))
}

/// A file with this scenario, for the test that is called so.
pub fn file(test: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("drill-{test}.toml"));
    std::fs::write(&path, text).expect("the folder of tests can be written to");
    path
}

impl From<Output> for Said {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            error: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Said {
    /// Report of `--json`.
    #[track_caller]
    pub fn report(&self) -> Value {
        serde_json::from_str(&self.out)
            .unwrap_or_else(|error| panic!("{error}: {}\n{}", self.out, self.error))
    }

    #[track_caller]
    pub fn failed_with(&self, code: i32, says: &[&str]) {
        assert_eq!(self.code, Some(code), "{}\n{}", self.out, self.error);
        for part in says {
            assert!(self.error.contains(part), "{part:?} is not in: {}", self.error);
        }
    }
}

/// A figure of a report.
#[track_caller]
pub fn figure(report: &Value, what: &str, of: &str, phase: Option<&str>) -> f64 {
    let figures = report["figures"].as_array().expect("figures");
    let is_it = |figure: &&Value| {
        figure["what"] == what && figure["of"] == of && figure["phase"].as_str() == phase
    };
    let found = figures.iter().find(is_it);
    found.unwrap_or_else(|| panic!("no {what} of {of}: {figures:?}"))["value"]
        .as_f64()
        .expect("a number")
}

pub fn notes(report: &Value) -> String {
    let notes = report["notes"].as_array().expect("notes").iter();
    notes.filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
}
