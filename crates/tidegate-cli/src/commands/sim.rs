use crate::failure::Failure;
use crate::sim_flags::SimFlags;
use std::io::{self, Write as _};
use tidegate_sim::pipeline::compare;

/// `tidegate sim …`.
pub fn run(flags: &SimFlags) -> Result<(), Failure> {
    let table = compare(&flags.compare.0, flags.seed)
        .map_err(|error| Failure::Runtime(format!("a scenario is not valid: {error}")))?;
    // A reader that has seen enough, such as `head`, is not a failure.
    let _ = io::stdout().write_all(table.to_string().as_bytes());
    Ok(())
}
