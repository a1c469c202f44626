//! The binary `tidegate`. It exits with 0 when all went well, 1 when something failed, and 2 when what was
//! typed or configured is wrong.

mod commands;
mod failure;
mod flags;
mod logging;
mod sources;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    commands::run(flags::Cli::parse().command).unwrap_or_else(|failure| {
        eprintln!("tidegate: {failure}");
        failure.exit_code()
    })
}
