//! The binary `tidegate`. It exits with 0 when all went well, 1 when something failed, and 2 when what was
//! typed or configured is wrong; `submit --wait` exits as its task did.

mod admin;
mod commands;
mod drill_flags;
mod failure;
mod flags;
mod logging;
mod mock_flags;
mod send_flags;
mod sim_flags;
mod sources;
mod tariff_flags;
mod task_flags;
mod threshold_flags;
mod usage_flags;
mod worker_flags;

use clap::Parser;
use failure::Failure;
use flags::{Cli, Command};
use mimalloc::MiMalloc;
use std::process::ExitCode;

/// A proxied request allocates some dozens of small things and frees them a moment later, which is what this
/// allocator is made for; the system's also gives pages back and asks for them again under load.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    run(Cli::parse().command).unwrap_or_else(|failure| {
        eprintln!("tidegate: {failure}");
        failure.exit_code()
    })
}

fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Up(flags) => commands::up::run(&flags),
        Command::Ingest(flags) => commands::ingest::run(&flags),
        Command::Usage(flags) => commands::usage::run(&flags).map(|()| ExitCode::SUCCESS),
        Command::Mock(flags) => commands::mock::run(&flags),
        Command::Worker(flags) => commands::worker::run(&flags),
        Command::Send(flags) => commands::send::run(&flags),
        Command::Submit(flags) => commands::tasks::submit(&flags),
        Command::Status(flags) => commands::tasks::status(&flags).map(|()| ExitCode::SUCCESS),
        Command::Tasks(flags) => commands::tasks::list(&flags).map(|()| ExitCode::SUCCESS),
        Command::Cancel(flags) => commands::tasks::cancel(&flags),
        Command::Logs(flags) => commands::tasks::logs(&flags).map(|()| ExitCode::SUCCESS),
        Command::Threshold(command) => {
            commands::threshold::run(&command).map(|()| ExitCode::SUCCESS)
        }
        Command::Tariff(command) => commands::tariff::run(&command),
        Command::Drill(flags) => commands::drill::run(&flags),
        Command::Sim(flags) => commands::sim::run(&flags).map(|()| ExitCode::SUCCESS),
        Command::Config(command) => commands::config::run(&command).map(|()| ExitCode::SUCCESS),
        Command::Launch(flags) => Ok(flags.stage.run()),
    }
}
