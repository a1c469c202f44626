use super::options::Options;
use super::page::Page;
use super::stop::{INTERRUPTED, Stop};
use super::{command, executors, find, gateway, pipeline, print, record};
use crate::commands::scenario_file;
use crate::drill_flags::DrillFlags;
use crate::failure::Failure;
use std::io::{self, Write as _};
use std::process::ExitCode;
use tidegate_sim::report::{Report, text};
use tidegate_sim::scenario::{Mode, Scenario, World};

/// `tidegate drill SCENARIO`.
pub fn run(flags: &DrillFlags) -> Result<ExitCode, Failure> {
    if let Some(path) = &flags.record {
        return record::run(flags, path);
    }
    let Some(name) = &flags.scenario else {
        put(&scenario_file::list(Mode::Drill));
        return Ok(ExitCode::SUCCESS);
    };
    let scenario = find::scenario(name, flags.short, flags.duration)?;
    let seed = flags.seed.unwrap_or(scenario.seed);
    let stop = Stop::listen().map_err(|error| Failure::Runtime(error.to_string()))?;
    let options = Options::new(flags, stop);
    let page = flags.html.as_deref().map(Page::open).transpose()?;
    let mut report = drilled(&scenario, seed, &options)?;
    report.command = Some(command::again(flags, name, seed));
    // The text has it, the page has it, and who reads the figures of a machine's report may not look there.
    if let Some(warning) =
        report.schedule.and_then(|schedule| schedule.warning()).filter(|_| flags.json)
    {
        let _ = writeln!(io::stderr(), "tidegate: {warning}");
    }
    match flags.json {
        true => put(&print::json(&report)?),
        false => put(&text::render(&report)),
    }
    // The last thing that can fail: what was measured is told by then.
    if let Some(page) = page {
        page.write(&report)?;
    }
    let code = match (options.stop.is_asked(), report.holds()) {
        (true, _) => ExitCode::from(INTERRUPTED),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::FAILURE,
    };
    Ok(code)
}

fn drilled(scenario: &Scenario, seed: u64, options: &Options) -> Result<Report, Failure> {
    match scenario.world() {
        Some(World::Gateway(_)) => gateway::run(scenario, seed, options),
        Some(World::Executors(_)) => executors::run(scenario, seed, options),
        Some(World::Pipeline(_)) => pipeline::run(scenario, seed, options),
        None => Err(Failure::Usage(format!("{}: there is nothing to drill in it", scenario.name))),
    }
}

fn put(text: &str) {
    // A reader that has seen enough, such as `head`, is not a failure.
    let _ = io::stdout().write_all(text.as_bytes());
}
