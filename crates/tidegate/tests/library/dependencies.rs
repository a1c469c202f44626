//! The dependencies of the default features: admission and the tower layer need no database and no runtime.

use std::collections::BTreeSet;
use std::process::Command;

/// Everything that `tidegate = "…"` compiles. A name that is new here is paid for by every user: think twice.
const BY_DEFAULT: [&str; 16] = [
    "bytes",
    "http",
    "http-body",
    "itoa",
    "pin-project-lite",
    "proc-macro2",
    "quote",
    "serde",
    "serde_core",
    "serde_derive",
    "syn",
    "tidegate",
    "tidegate-core",
    "tower-layer",
    "tower-service",
    "unicode-ident",
];

fn dependencies(features: &[&str]) -> BTreeSet<String> {
    let tree = Command::new(env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["tree", "-p", "tidegate", "-e", "normal", "--prefix", "none", "--offline"])
        .args(["--locked", "--features", &features.join(",")])
        .output()
        .expect("cargo runs");
    let errors = String::from_utf8_lossy(&tree.stderr);
    assert!(tree.status.success(), "{errors}");
    let text = String::from_utf8(tree.stdout).expect("crate names are text");
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn the_default_features_pull_a_short_list_of_crates() {
    assert_eq!(dependencies(&[]), BY_DEFAULT.map(str::to_owned).into());
}

#[test]
fn each_capability_pulls_its_own_database_only() {
    let has = |features: &[&str]| {
        let found = dependencies(features);
        ["tokio", "fjall", "tokio-postgres", "redis", "rustls", "hyper"]
            .map(|name| found.contains(name))
    };
    assert_eq!(has(&["routing", "outbox", "retry"]), [true, false, false, false, false, false]);
    assert_eq!(has(&["ingest", "tasks"]), [true, false, false, false, false, false]);
    assert_eq!(has(&["fjall"]), [true, true, false, false, false, false]);
    assert_eq!(has(&["postgres"]), [true, false, true, false, true, false]);
    assert_eq!(has(&["redis"]), [true, false, false, true, false, false]);
}
