use crate::commands::{
    cancel, cluster, config, drain, drill, gate, ingest, launch, logs, manager, members, mock,
    send, sim, status, submit, tariff, tasks, threshold, token, up, upstreams, usage, worker,
    workers,
};
use crate::failure::Failure;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Overload protection, usage metering and task execution in front of inference servers and workers
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, after_help = up::EXAMPLES, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start the gateway, with ingestion and tasks
    #[command(after_help = up::EXAMPLES)]
    Up(up::UpFlags),
    /// Start a manager: tasks for workers that dial it
    #[command(after_help = manager::EXAMPLES)]
    Manager(manager::ManagerFlags),
    /// Start a gate: forwards requests and tasks to managers
    #[command(after_help = gate::EXAMPLES)]
    Gate(gate::GateFlags),
    /// Make a cluster, and tokens for nodes that join it
    #[command(subcommand, after_help = cluster::EXAMPLES)]
    Cluster(cluster::ClusterCommand),
    /// Show the members of a cluster: role, state, load and version
    #[command(after_help = members::EXAMPLES)]
    Members(members::MembersFlags),
    /// Stop the dispatch of tasks to a worker; what it executes goes on
    #[command(after_help = drain::EXAMPLES)]
    Drain(drain::DrainFlags),
    /// Resume the dispatch of tasks to a worker
    Undrain(drain::UndrainFlags),
    /// Submit a task: code that an executor runs
    #[command(after_help = submit::EXAMPLES)]
    Submit(submit::SubmitFlags),
    /// Show one task, or task counts and executors
    #[command(after_help = status::EXAMPLES)]
    Status(status::StatusFlags),
    /// List tasks, newest first
    #[command(after_help = tasks::EXAMPLES)]
    Tasks(tasks::TasksFlags),
    /// Cancel tasks
    #[command(after_help = cancel::EXAMPLES)]
    Cancel(cancel::CancelFlags),
    /// Show the output of a task
    #[command(after_help = logs::EXAMPLES)]
    Logs(logs::LogsFlags),
    /// Start a mock inference server, for tests and drills
    #[command(after_help = mock::EXAMPLES)]
    Mock(mock::MockFlags),
    /// Start a worker: an executor with slots for tasks
    #[command(after_help = worker::EXAMPLES)]
    Worker(Box<worker::WorkerFlags>),
    /// Show the workers of a manager: slots, load and backpressure
    #[command(after_help = workers::EXAMPLES)]
    Workers(workers::WorkersFlags),
    /// Start only the ingestion of usage records
    #[command(after_help = ingest::EXAMPLES)]
    Ingest(ingest::IngestFlags),
    /// Show usage and cost
    #[command(after_help = usage::EXAMPLES)]
    Usage(usage::UsageFlags),
    /// Send usage records in line protocol to an ingest server; each record counts once
    #[command(after_help = send::EXAMPLES)]
    Send(send::SendFlags),
    /// Show or change the busy thresholds of a running gateway
    #[command(subcommand, after_help = threshold::EXAMPLES)]
    Threshold(threshold::ThresholdCommand),
    /// Show the upstreams of a running gateway: limits, load and queues
    #[command(after_help = upstreams::EXAMPLES)]
    Upstreams(upstreams::UpstreamsFlags),
    /// Make tokens for clients and operators
    #[command(subcommand, after_help = token::EXAMPLES)]
    Token(token::TokenCommand),
    /// Check a tariff file and price examples
    #[command(subcommand, after_help = tariff::EXAMPLES)]
    Tariff(tariff::TariffCommand),
    /// Run a scenario's load and faults on a real system and judge its expectations
    #[command(after_help = drill::EXAMPLES)]
    Drill(Box<drill::DrillFlags>),
    /// Simulate a scenario in virtual time, or compare settings
    #[command(after_help = sim::EXAMPLES)]
    Sim(sim::SimFlags),
    /// Write, check or show the configuration
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Stage of the sandbox launcher; started by the process executor
    #[command(hide = true)]
    Launch(launch::LaunchFlags),
}

// === impl Command ===

impl Command {
    /// Runs the command; the exit code is explained in [`exit_code`](crate::exit_code).
    pub fn run(&self) -> Result<ExitCode, Failure> {
        match self {
            Self::Up(flags) => up::run(flags),
            Self::Manager(flags) => manager::run(flags),
            Self::Gate(flags) => gate::run(flags),
            Self::Cluster(command) => success(cluster::run(command)),
            Self::Members(flags) => success(members::run(flags)),
            Self::Drain(flags) => success(drain::run(flags)),
            Self::Undrain(flags) => success(drain::run_off(flags)),
            Self::Submit(flags) => submit::run(flags),
            Self::Status(flags) => success(status::run(flags)),
            Self::Tasks(flags) => success(tasks::run(flags)),
            Self::Cancel(flags) => cancel::run(flags),
            Self::Logs(flags) => success(logs::run(flags)),
            Self::Mock(flags) => mock::run(flags),
            Self::Worker(flags) => worker::run(flags),
            Self::Workers(flags) => success(workers::run(flags)),
            Self::Ingest(flags) => ingest::run(flags),
            Self::Usage(flags) => success(usage::run(flags)),
            Self::Send(flags) => send::run(flags),
            Self::Threshold(command) => success(threshold::run(command)),
            Self::Upstreams(flags) => success(upstreams::run(flags)),
            Self::Token(command) => success(token::run(command)),
            Self::Tariff(command) => tariff::run(command),
            Self::Drill(flags) => drill::run(flags),
            Self::Sim(flags) => sim::run(flags),
            Self::Config(command) => success(config::run(command)),
            Self::Launch(flags) => Ok(launch::run(flags)),
        }
    }
}

fn success(result: Result<(), Failure>) -> Result<ExitCode, Failure> {
    result.map(|()| ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_flags_are_well_formed() {
        Cli::command().debug_assert();
    }

    /// Commands of this program in a help text, without the comments behind them.
    fn examples(help: &str) -> Vec<String> {
        let joined = help.replace("\\\n", " ");
        let parts = joined.lines().flat_map(|line| line.split(['|', '&', '(', ')']));
        let commands = parts.filter_map(|part| {
            let (before, rest) = part.split_once("tidegate ")?;
            // At the beginning, or after variables.
            let is_command = before.split_whitespace().all(|word| word.contains('='));
            let command = rest.trim_start().split("  ").next()?;
            is_command.then(|| format!("tidegate {command}"))
        });
        commands.collect()
    }

    /// Words of a command line with simple quotes.
    fn words(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        let mut quote = None;
        for char in line.chars() {
            match (quote, char) {
                (None, '\'' | '"') => quote = Some(char),
                (Some(open), _) if open == char => quote = None,
                (None, ' ') => words.push(String::new()),
                (_, _) => words.iter_mut().last().unwrap().push(char),
            }
        }
        words.retain(|word| !word.is_empty());
        words
    }

    #[test]
    fn every_example_of_the_help_is_a_command() {
        let mut root = Cli::command();
        root.build();
        let mut helps = vec![root.get_after_help().unwrap().to_string()];
        for command in root.get_subcommands() {
            helps.extend(command.get_after_help().map(ToString::to_string));
            let below = command.get_subcommands().filter_map(|below| below.get_after_help());
            helps.extend(below.map(ToString::to_string));
        }
        let examples: Vec<_> = helps.iter().flat_map(|help| examples(help)).collect();
        assert!(examples.len() > 60, "{}: {examples:#?}", examples.len());
        for line in examples {
            if let Err(error) = Cli::try_parse_from(words(&line)) {
                panic!("{line}: {error}");
            }
        }
    }
}
