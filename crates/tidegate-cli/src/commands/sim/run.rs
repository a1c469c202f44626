use super::{compare, many, one, scenario};
use crate::failure::Failure;
use crate::sim_flags::SimFlags;
use std::io::{self, Write as _};
use std::process::ExitCode;

/// `tidegate sim …`.
pub fn run(flags: &SimFlags) -> Result<ExitCode, Failure> {
    if let Some(comparison) = &flags.compare {
        let table = compare::table(comparison, flags)?;
        print(&table);
        return Ok(ExitCode::SUCCESS);
    }
    let Some(name) = &flags.scenario else {
        let message = "say what to simulate: a scenario such as load_sweep, or --compare";
        return Err(Failure::Usage(message.to_owned()));
    };
    let scenario = scenario::read(name, flags)?;
    match flags.seeds {
        Some(seeds) => many::run(&scenario, seeds, flags),
        None => one::run(&scenario, flags),
    }
}

/// A reader that has seen enough, such as `head`, is not a failure.
pub fn print(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}
