use super::command;
use super::flags::SimFlags;
use super::scenario::SelectedScenario;
use super::shrunk::ShrunkReplay;
use crate::failure::Failure;
use crate::terminal::{print, report_json};
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use tidegate_sim::report::{Report, html, text};
use tidegate_sim::scenario::Mode;
use tidegate_sim::{Violation, simulate};

/// Runs a scenario once and prints its report.
pub fn run(selected: &SelectedScenario, flags: &SimFlags) -> Result<ExitCode, Failure> {
    let seed = flags.seed.unwrap_or(selected.scenario.seed);
    let findings = match simulate(&selected.scenario, seed, flags.plant) {
        Ok(findings) => findings,
        Err(violation) => return report_violation(selected, seed, violation, flags),
    };
    let mut report = Report::new(&selected.scenario, Mode::Sim, seed, findings);
    report.command = Some(command::again(flags, seed, &selected.edits));
    match flags.json {
        true => print(&report_json(&report)?),
        false => print(&text::render(&report)),
    }
    if let Some(path) = &flags.html {
        write(path, &html::page(&report))?;
    }
    Ok(if report.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Reports the violation of an invariant.
fn report_violation(
    selected: &SelectedScenario,
    seed: u64,
    violation: Violation,
    flags: &SimFlags,
) -> Result<ExitCode, Failure> {
    let shrunk = ShrunkReplay::find(selected, seed, violation, flags);
    match flags.json {
        true => print(&report_json(&shrunk)?),
        false => print(&shrunk.to_string()),
    }
    if let Some(path) = &flags.html {
        let path = path.display();
        let _ =
            writeln!(io::stderr(), "tidegate: {path} is not written: an invariant was violated");
    }
    Ok(ExitCode::FAILURE)
}

fn write(path: &Path, page: &str) -> Result<(), Failure> {
    let failed = |error| Failure::Runtime(format!("{} can't be written: {error}", path.display()));
    std::fs::write(path, page).map_err(failed)
}
