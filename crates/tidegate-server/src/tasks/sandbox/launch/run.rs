use super::command::LaunchCommand;
use super::{confine, probe, supervise};
use std::process::ExitCode;

/// Runs a command of the launcher. The calling process must do nothing else afterwards.
#[must_use]
pub fn run(command: LaunchCommand) -> ExitCode {
    match command {
        LaunchCommand::Supervise => supervise::run(),
        LaunchCommand::Confine => confine::run(),
        LaunchCommand::Probe => probe::run(),
    }
}
