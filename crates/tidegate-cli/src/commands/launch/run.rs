use super::flags::LaunchFlags;
use std::process::ExitCode;
use tidegate_server::tasks::sandbox::launch;

/// Runs one command of the sandbox launcher; the process executor starts it.
pub fn run(flags: &LaunchFlags) -> ExitCode {
    launch::run(flags.command)
}
