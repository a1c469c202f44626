//! Puts the commit of the checkout into `TIDEGATE_COMMIT`, or `unknown` outside of one.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if let Some(head) = git(&["rev-parse", "--git-path", "HEAD"]) {
        rerun_if_changed(&head);
    }
    let commit = git(&["rev-parse", "--short", "HEAD"]).unwrap_or("unknown".to_owned());
    println!("cargo::rustc-env=TIDEGATE_COMMIT={commit}");
}

/// The output of a git command; `None` when git or the checkout is missing.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}

fn rerun_if_changed(path: &str) {
    // A missing file would make every build run this again.
    if Path::new(path).exists() {
        println!("cargo::rerun-if-changed={path}");
    }
}
