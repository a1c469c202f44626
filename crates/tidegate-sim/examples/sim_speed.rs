//! Speed of the simulator on a scenario, and its results.
//!
//! `cargo run -p tidegate-sim --release --example sim_speed -- [SCENARIO] [SEED] [short]`

// How fast a run is in real time is all that this asks of a clock; no decision sees it.
#![allow(clippy::disallowed_types, clippy::disallowed_methods)]

use std::time::Instant;
use tidegate_sim::report::Report;
use tidegate_sim::scenario::{Mode, Scenario};
use tidegate_sim::{catalog, simulate};

fn main() {
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap_or_else(|| "load_sweep".to_owned());
    let seed = args.next().map_or(1, |seed| seed.parse().expect("a seed is a number"));
    let scenario = catalog::find(&name).unwrap_or_else(|| {
        let text = std::fs::read_to_string(&name).expect("a scenario that ships, or a file");
        Scenario::read(&name, &text)
    });
    let scenario = scenario.unwrap_or_else(|error| panic!("{name}: {error}"));
    let scenario = if args.next().is_some() { scenario.shortened() } else { scenario };
    let start = Instant::now();
    match simulate(&scenario, seed, None) {
        Ok(findings) => {
            let elapsed_s = start.elapsed().as_secs_f64();
            let decisions = findings.decisions;
            let report = Report::new(&scenario, Mode::Sim, seed, findings);
            for table in &report.findings.tables {
                println!("{}\n{}", table.title, table.columns.join(" | "));
                for row in &table.rows {
                    let cells: Vec<_> = row.iter().map(ToString::to_string).collect();
                    println!("{}", cells.join(" | "));
                }
            }
            report.checks.iter().for_each(|check| println!("{check}"));
            println!(
                "{name}: {:.0} s of virtual time, {decisions} decisions in {elapsed_s:.2} s: {:.2} \
                 million a second",
                scenario.duration_s,
                decisions as f64 / elapsed_s / 1e6
            );
        }
        Err(violation) => println!("{violation}"),
    }
}
