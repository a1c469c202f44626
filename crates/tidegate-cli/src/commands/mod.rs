//! What each command does.

mod config;
mod up;

use crate::failure::Failure;
use crate::flags::Command;
use std::process::ExitCode;

/// Runs the command that was typed.
pub fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Up(flags) => up::run(&flags),
        Command::Config(command) => config::run(&command).map(|()| ExitCode::SUCCESS),
    }
}
