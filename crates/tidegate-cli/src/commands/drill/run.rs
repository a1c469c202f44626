use super::flags::DrillFlags;
use super::options::Options;
use super::page::Page;
use super::stop::StopRequest;
use super::{command, executors, gateway, pipeline, record, scenario};
use crate::exit_code;
use crate::failure::Failure;
use crate::scenario_file;
use crate::terminal::{print, report_json};
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
        print(&scenario_file::list(Mode::Drill));
        return Ok(ExitCode::SUCCESS);
    };
    let scenario = scenario::read(name, flags.short, flags.duration)?;
    let seed = flags.seed.unwrap_or(scenario.seed);
    let stop = StopRequest::listen().map_err(|error| Failure::Runtime(error.to_string()))?;
    let options = Options::new(flags, stop);
    let page = flags.html.as_deref().map(Page::open).transpose()?;
    let mut report = drill(&scenario, seed, &options)?;
    report.command = Some(command::again(flags, name, seed));
    // Text and page contain the warning; readers of the JSON get it on standard error.
    if let Some(warning) =
        report.schedule.and_then(|schedule| schedule.warning()).filter(|_| flags.json)
    {
        let _ = writeln!(io::stderr(), "tidegate: {warning}");
    }
    match flags.json {
        true => print(&report_json(&report)?),
        false => print(&text::render(&report)),
    }
    // Last, because it can fail: the figures are printed by then.
    if let Some(page) = page {
        page.write(&report)?;
    }
    let code = match (options.stop.is_requested(), report.holds()) {
        (true, _) => ExitCode::from(exit_code::INTERRUPTED),
        (false, true) => ExitCode::SUCCESS,
        (false, false) => ExitCode::FAILURE,
    };
    Ok(code)
}

fn drill(scenario: &Scenario, seed: u64, options: &Options) -> Result<Report, Failure> {
    match scenario.world() {
        Some(World::Gateway(_)) => gateway::run(scenario, seed, options),
        Some(World::Executors(_)) => executors::run(scenario, seed, options),
        Some(World::Pipeline(_)) => pipeline::run(scenario, seed, options),
        None => Err(Failure::Usage(format!(
            "{} has no gateway, pipeline or executors to drill",
            scenario.name
        ))),
    }
}
