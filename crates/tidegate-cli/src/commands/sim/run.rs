use super::{compare, heed, many, one, recorded, scenario};
use crate::commands::scenario_file;
use crate::failure::Failure;
use crate::sim_flags::SimFlags;
use serde::Serialize;
use std::io::{self, Write as _};
use std::process::ExitCode;
use tidegate_sim::scenario::Mode;

/// `tidegate sim …`.
pub fn run(flags: &SimFlags) -> Result<ExitCode, Failure> {
    if flags.list {
        print(&scenario_file::list(Mode::Sim));
        return Ok(ExitCode::SUCCESS);
    }
    heed::check(flags)?;
    if let Some(comparison) = &flags.compare {
        let table = compare::table(comparison, flags)?;
        print(&table);
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(path) = &flags.replay {
        return recorded::run(path, flags);
    }
    let Some(name) = &flags.scenario else {
        let message = "say what to simulate: a scenario such as load_sweep (--list has them), --compare or \
                       --replay";
        return Err(Failure::Usage(message.to_owned()));
    };
    let chosen = scenario::read(name, flags)?;
    match flags.seeds {
        Some(seeds) => many::run(&chosen, seeds, flags),
        None => one::run(&chosen, flags),
    }
}

/// For machines.
pub fn json(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::Runtime(format!("the report can't be written: {error}")))?;
    Ok(text + "\n")
}

/// A reader that has seen enough, such as `head`, is not a failure.
pub fn print(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}
