use super::replay;
use super::run::print;
use crate::failure::Failure;
use crate::sim_flags::SimFlags;
use std::path::Path;
use std::process::ExitCode;
use tidegate_sim::report::{Report, html, text};
use tidegate_sim::scenario::{Mode, Scenario};
use tidegate_sim::simulate;

/// One run of a scenario, and what came of it.
pub fn run(scenario: &Scenario, flags: &SimFlags) -> Result<ExitCode, Failure> {
    let seed = flags.seed.unwrap_or(scenario.seed);
    let findings = match simulate(scenario, seed, flags.plant) {
        Ok(findings) => findings,
        Err(violation) => {
            print(&replay::explain(scenario, seed, &violation, flags));
            return Ok(ExitCode::FAILURE);
        }
    };
    let report = Report::new(scenario, Mode::Sim, seed, findings);
    if flags.json {
        let json = serde_json::to_string_pretty(&report)
            .map_err(|error| Failure::Runtime(format!("the report can't be written: {error}")))?;
        print(&format!("{json}\n"));
    } else {
        print(&text::render(&report));
    }
    if let Some(path) = &flags.html {
        write(path, &html::page(&report))?;
    }
    Ok(if report.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn write(path: &Path, page: &str) -> Result<(), Failure> {
    let failed = |error| Failure::Runtime(format!("{} can't be written: {error}", path.display()));
    std::fs::write(path, page).map_err(failed)
}
