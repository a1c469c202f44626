//! Helpers of tests that run `tidegate` as a process.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

use std::ffi::OsString;
use std::io::BufRead;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

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

/// Commands that a banner says to try.
pub fn commands_to_try(banner: &str) -> Vec<String> {
    let lines = banner.lines().skip_while(|line| *line != "Try:").skip(1);
    lines.take_while(|line| !line.is_empty()).map(|line| line.trim().to_owned()).collect()
}

/// Commands between backquotes in a message.
pub fn quoted_commands(message: &str) -> Vec<String> {
    let quoted = message.split('`').skip(1).step_by(2);
    quoted.filter(|text| text.starts_with("tidegate ")).map(str::to_owned).collect()
}

/// A command as a shell runs it in this folder, where `tidegate` is the program of this build and curl fails on an
/// error of the server.
pub fn shell(line: &str, folder: &Path) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_tidegate"));
    let mut path = OsString::from(program.parent().unwrap());
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let line = line.replace("curl -", "curl --fail --max-time 60 -");
    let mut command = Command::new("sh");
    command.args(["-c", &line]).current_dir(folder).env_clear().env("PATH", path);
    command.stdin(Stdio::null());
    command
}

/// Output of a command that must succeed.
#[track_caller]
pub fn succeeded(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}: {out}{err}");
    out
}
