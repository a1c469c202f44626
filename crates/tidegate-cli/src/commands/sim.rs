use crate::failure::Failure;
use crate::sim_flags::{Comparison, SimFlags};
use std::io::{self, Write as _};
use tidegate_sim::{executors, pipeline};

/// `tidegate sim …`.
pub fn run(flags: &SimFlags) -> Result<(), Failure> {
    let table = match &flags.compare {
        Comparison::Laws(laws) => pipeline::compare(laws, flags.seed)
            .map_err(|error| Failure::Runtime(format!("a scenario is not valid: {error}")))?
            .to_string(),
        Comparison::Placements(policies) => {
            let SimFlags { executors, load, tasks, seed, .. } = flags;
            executors::compare(policies, executors, *load, *tasks, *seed).to_string()
        }
    };
    // A reader that has seen enough, such as `head`, is not a failure.
    let _ = io::stdout().write_all(table.as_bytes());
    Ok(())
}
