//! Ten times the load that there are places for, and how fast the simulator runs it.
//!
//! `cargo run -p tidegate-sim --release --example overload`

// How fast a run is in real time is all that this asks of a clock; no decision sees it.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::{Duration, Instant};
use tidegate_sim::admission::{AdmissionScenario, run};

fn main() {
    let start = Instant::now();
    let report = run(&AdmissionScenario {
        returns_max: 1,
        ..AdmissionScenario::steady([100.0, 5000.0, 3000.0, 2000.0], Duration::from_secs(200))
    });
    let elapsed_s = start.elapsed().as_secs_f64();

    println!("{}", serde_json::to_string_pretty(&report).expect("a report has no odd keys"));
    println!(
        "{} decisions in {elapsed_s:.2} s: {:.2} million a second",
        report.decisions,
        report.decisions as f64 / elapsed_s / 1e6
    );
}
