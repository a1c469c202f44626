use super::command;
use super::replay::Replayed;
use super::run::{json, print};
use super::scenario::Chosen;
use crate::failure::Failure;
use crate::sim_flags::SimFlags;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;
use tidegate_sim::report::{Report, html, text};
use tidegate_sim::scenario::Mode;
use tidegate_sim::{Violation, simulate};

/// One run of a scenario, and what came of it.
pub fn run(chosen: &Chosen, flags: &SimFlags) -> Result<ExitCode, Failure> {
    let seed = flags.seed.unwrap_or(chosen.scenario.seed);
    let findings = match simulate(&chosen.scenario, seed, flags.plant) {
        Ok(findings) => findings,
        Err(violation) => return broken(chosen, seed, violation, flags),
    };
    let mut report = Report::new(&chosen.scenario, Mode::Sim, seed, findings);
    report.command = Some(command::again(flags, seed, &chosen.edits));
    match flags.json {
        true => print(&json(&report)?),
        false => print(&text::render(&report)),
    }
    if let Some(path) = &flags.html {
        write(path, &html::page(&report))?;
    }
    Ok(if report.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// An invariant broke: there is nothing to report but that.
fn broken(
    chosen: &Chosen,
    seed: u64,
    violation: Violation,
    flags: &SimFlags,
) -> Result<ExitCode, Failure> {
    let replayed = Replayed::find(chosen, seed, violation, flags);
    match flags.json {
        true => print(&json(&replayed)?),
        false => print(&replayed.to_string()),
    }
    if let Some(path) = &flags.html {
        let path = path.display();
        let _ = writeln!(io::stderr(), "tidegate: {path} is not written: an invariant broke");
    }
    Ok(ExitCode::FAILURE)
}

fn write(path: &Path, page: &str) -> Result<(), Failure> {
    let failed = |error| Failure::Runtime(format!("{} can't be written: {error}", path.display()));
    std::fs::write(path, page).map_err(failed)
}
