//! Check of metrics pages by Prometheus' `promtool`, for tests.

use std::io::{self, Write as _};
use std::process::{Command, Stdio};

/// Result of `promtool check metrics`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Exit code: 0 if the page is valid, 3 for lint warnings.
    pub code: Option<i32>,
    /// Standard error of the tool.
    pub complaints: String,
}

/// Checks a metrics page; blocks until the tool has ended.
///
/// # Errors
///
/// When `promtool` can't be started: install Debian's package `prometheus`, or run `make setup`.
pub fn check_metrics(page: &str) -> io::Result<Verdict> {
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| {
            let hint = "install Debian's package `prometheus`, or run `make setup`";
            io::Error::new(error.kind(), format!("promtool: {error}; {hint}"))
        })?;
    if let Some(mut stdin) = promtool.stdin.take() {
        stdin.write_all(page.as_bytes())?;
    }
    let output = promtool.wait_with_output()?;
    let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok(Verdict { code: output.status.code(), complaints })
}
