use super::flags::SimFlags;
use super::{check_flags, compare, many_seeds, one_seed, recording, scenario};
use crate::failure::Failure;
use crate::scenario_file;
use crate::terminal::print;
use std::process::ExitCode;
use tidegate_sim::scenario::Mode;

/// `tidegate sim …`.
pub fn run(flags: &SimFlags) -> Result<ExitCode, Failure> {
    if flags.list {
        print(&scenario_file::list(Mode::Sim));
        return Ok(ExitCode::SUCCESS);
    }
    check_flags::check(flags)?;
    if let Some(comparison) = &flags.compare {
        let table = compare::table(comparison, flags)?;
        print(&table);
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(path) = &flags.replay {
        return recording::run(path, flags);
    }
    let Some(name) = &flags.scenario else {
        let message = "nothing to simulate: name a scenario such as load_sweep (--list shows all), or use --compare or \
                       --replay";
        return Err(Failure::Usage(message.to_owned()));
    };
    let chosen = scenario::read(name, flags)?;
    match flags.seeds {
        Some(seeds) => many_seeds::run(&chosen, seeds, flags),
        None => one_seed::run(&chosen, flags),
    }
}
