//! The fuzzer: libFuzzer around one target, which the environment names. `scripts/fuzz` builds and runs it.
#![no_main]

mod targets;

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use targets::{TARGETS, Target};

/// One program for all targets: each would link all crates again.
const VARIABLE: &str = "TIDEGATE_FUZZ_TARGET";

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var(VARIABLE).unwrap_or_default();
    let target = TARGETS.iter().find(|target| target.name == name);
    target.unwrap_or_else(|| {
        let known: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!("{VARIABLE} is {name:?}: expected one of {}", known.join(", "));
        std::process::exit(2)
    })
});

fuzz_target!(|input: &[u8]| {
    (TARGET.run)(input);
});
