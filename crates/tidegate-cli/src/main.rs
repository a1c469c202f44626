//! The binary `tidegate`. Exit codes are documented in `exit_code.rs`.

mod admin_client;
mod banner;
mod cli;
mod cluster_node;
mod commands;
mod config_loader;
mod descriptor_limit;
mod exit_code;
mod failure;
mod logging;
mod node_process;
mod output_file;
mod scenario_file;
mod service_manager;
mod settings_flags;
mod shutdown;
mod task_client;
mod terminal;

use clap::Parser;
use cli::Cli;
use mimalloc::MiMalloc;
use std::process::ExitCode;

/// Allocator: a proxied request makes dozens of small, short-lived allocations. The system allocator returns pages
/// to the kernel and requests them again under load.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    Cli::parse().command.run().unwrap_or_else(|failure| {
        eprintln!("tidegate: {failure}");
        failure.exit_code()
    })
}
