//! Helpers of tests that run `tidegate` as a process.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::io::BufRead;
use std::process::{Child, Command, Output};

/// Reads the start banner, which ends with the line about Ctrl-C.
pub fn banner(out: &mut impl BufRead) -> String {
    let mut banner = String::new();
    while !banner.contains("Ctrl-C") {
        assert_ne!(out.read_line(&mut banner).unwrap(), 0, "it ended at once: {banner}");
    }
    banner
}

/// URL on the line of a banner that begins with this name.
pub fn banner_url(banner: &str, name: &str) -> String {
    let line = banner.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
    line.split_whitespace().nth(1).unwrap().to_owned()
}

/// Sends a signal to a process.
pub fn signal(child: &Child, signal: &str) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
}

/// Output of `curl`.
pub fn curl(args: &[&str]) -> String {
    let output = Command::new("curl")
        .args(["--silent", "--max-time", "30"])
        .args(args)
        .output()
        .expect("curl is needed for this test: install it, or run `make setup`");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Asserts the exit code and parts of the error output.
#[track_caller]
pub fn refused(output: &Output, code: i32, says: &[&str]) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{error}");
    for part in says {
        assert!(error.contains(part), "{part:?} is not in: {error}");
    }
}
