//! What the crates may depend on, read from their manifests.

use super::tree::root;
use std::fs;
use toml::{Table, Value};

/// What brings a clock, a socket, a die or a log of its own.
const AMBIENT: &[&str] = &[
    "tokio",
    "hyper",
    "rand",
    "mio",
    "socket2",
    "tracing",
    "chrono",
    "time",
    "fastrand",
    "getrandom",
];

pub const RULES: &[Rule] = &[
    Rule { krate: "tidegate-core", needs: &[], may: &[], never: AMBIENT },
    Rule {
        krate: "tidegate",
        needs: &["tidegate-core"],
        may: &["tidegate-core"],
        never: &["clap"],
    },
    Rule {
        krate: "tidegate-server",
        needs: &["tidegate"],
        may: &["tidegate", "tidegate-core"],
        never: &["clap"],
    },
    Rule {
        krate: "tidegate-testkit",
        needs: &["tidegate"],
        may: &["tidegate", "tidegate-core"],
        never: &["clap"],
    },
    Rule {
        krate: "tidegate-sim",
        needs: &["tidegate-core"],
        may: &["tidegate-core"],
        never: AMBIENT,
    },
];

/// The rules of one crate.
pub struct Rule {
    krate: &'static str,
    /// Crates of ours that it is built on.
    needs: &'static [&'static str],
    /// All crates of ours that it may know.
    may: &'static [&'static str],
    /// Crates of others that it must not know.
    never: &'static [&'static str],
}

// === impl Rule ===

impl Rule {
    /// What the manifest says against this rule.
    pub fn violations(&self) -> Vec<String> {
        let dependencies = dependencies(&manifest(self.krate));
        let mut findings = Vec::new();
        for name in &dependencies {
            let ours = name.starts_with("tidegate");
            if (ours && !self.may.contains(&name.as_str())) || self.never.contains(&name.as_str()) {
                findings.push(format!("{} must not depend on {name}", self.krate));
            }
        }
        for name in
            self.needs.iter().filter(|name| !dependencies.iter().any(|found| found == *name))
        {
            findings.push(format!("{} should be built on {name}", self.krate));
        }
        findings
    }
}

/// The paths in `disallowed-methods` of a crate's `clippy.toml`; none when there is no such file.
pub fn disallowed_methods(krate: &str) -> Vec<String> {
    let path = root().join("crates").join(krate).join("clippy.toml");
    let config: Table =
        fs::read_to_string(path).unwrap_or_default().parse().expect("clippy.toml is TOML");
    let methods = config.get("disallowed-methods").and_then(Value::as_array);
    let path_of = |entry: &Value| {
        let path = entry.get("path").unwrap_or(entry);
        path.as_str().map(str::to_owned)
    };
    methods.into_iter().flatten().filter_map(path_of).collect()
}

fn manifest(krate: &str) -> Table {
    let path = root().join("crates").join(krate).join("Cargo.toml");
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.parse().expect("Cargo.toml is TOML")
}

/// What is compiled into the crate or its build: not what only its tests use.
fn dependencies(manifest: &Table) -> Vec<String> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let targets =
        targets.into_iter().flat_map(|targets| targets.values()).filter_map(Value::as_table);
    let mut names = Vec::new();
    for table in targets.chain([manifest]) {
        for section in ["dependencies", "build-dependencies"] {
            let entries = table.get(section).and_then(Value::as_table);
            names.extend(entries.into_iter().flatten().map(|(key, value)| package(key, value)));
        }
    }
    names
}

/// A dependency's real name: `package` when it is renamed.
fn package(key: &str, value: &Value) -> String {
    value.get("package").and_then(Value::as_str).unwrap_or(key).to_owned()
}

#[test]
fn dependencies_are_found_under_other_names_and_for_some_targets() {
    let text = r#"
        [dependencies]
        plain = "1"
        renamed = { package = "real", version = "1" }
        [target.'cfg(unix)'.dependencies]
        unix = "1"
        [dev-dependencies]
        test-only = "1"
    "#;
    let manifest: Table = text.parse().unwrap();
    let mut found = dependencies(&manifest);
    found.sort();
    assert_eq!(found, ["plain", "real", "unix"]);
}
