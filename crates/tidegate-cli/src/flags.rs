use crate::drill_flags::{self, DrillFlags};
use crate::mock_flags::{self, MockFlags};
use crate::send_flags::{self, SendFlags};
use crate::sim_flags::{self, SimFlags};
use crate::tariff_flags::{self, TariffCommand};
use crate::task_flags::{self, CancelFlags, LogsFlags, StatusFlags, SubmitFlags, TasksFlags};
use crate::threshold_flags::{self, ThresholdCommand};
use crate::usage_flags::{self, UsageFlags};
use crate::worker_flags::{self, WorkerFlags};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;
use tidegate_server::worker::process::launch::Stage;

const EXAMPLES: &str = "\
Examples:
  tidegate up --upstream http://127.0.0.1:9001
  tidegate up --upstream h2c://10.0.0.5:50051 --upstream h2c://10.0.0.6:50051 --global-limit 64
  tidegate mock --listen 127.0.0.1:9000    a synthetic inference server to put it in front of
  tidegate config init                     writes ./tidegate.toml, every setting explained
  tidegate config check                    says everything that is wrong at once
  tidegate config show --high-limit 50     says what would hold, and where each value comes from
  TIDEGATE_ADMISSION_HIGH_LIMIT=50 tidegate up

Settings come from the file, then the environment, then flags; later wins.
The file is --config, else TIDEGATE_CONFIG, else ./tidegate.toml if there is one.

Exit codes: 0 ok, 1 failed while running, 2 wrong flags or configuration.";

const INGEST_EXAMPLES: &str = "\
Examples:
  tidegate ingest
  tidegate ingest --store postgres://tidegate@127.0.0.1/usage --tariffs tariffs.toml
  echo 'tokens,tenant=acme output=1234i' | nc -N 127.0.0.1 7071
  tidegate send usage.lp
  tidegate usage --by tenant --since 1h

Exit codes: 0 ok, 1 failed while running, 2 wrong flags or configuration.";

/// Keeps workers useful when more is asked of them than they can do.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start the gateway
    #[command(after_help = EXAMPLES)]
    Up(UpFlags),
    /// Have a task done: code that an executor runs
    #[command(after_help = task_flags::SUBMIT_EXAMPLES)]
    Submit(SubmitFlags),
    /// Show everything about a task, or how many there are and who does them
    #[command(after_help = task_flags::STATUS_EXAMPLES)]
    Status(StatusFlags),
    /// List tasks, the newest first
    #[command(after_help = task_flags::TASKS_EXAMPLES)]
    Tasks(TasksFlags),
    /// Stop tasks
    #[command(after_help = task_flags::CANCEL_EXAMPLES)]
    Cancel(CancelFlags),
    /// Show what a task has written
    #[command(after_help = task_flags::LOGS_EXAMPLES)]
    Logs(LogsFlags),
    /// Start a synthetic inference server, for trying out and for drills
    #[command(after_help = mock_flags::EXAMPLES)]
    Mock(MockFlags),
    /// Start an executor: slots in which tasks are run
    #[command(after_help = worker_flags::EXAMPLES)]
    Worker(WorkerFlags),
    /// Start only the ingestion of usage records
    #[command(after_help = INGEST_EXAMPLES)]
    Ingest(UpFlags),
    /// Show what was used, and what it costs
    #[command(after_help = usage_flags::EXAMPLES)]
    Usage(UsageFlags),
    /// Send usage records in line protocol to an ingest server, each counted once
    #[command(after_help = send_flags::EXAMPLES)]
    Send(SendFlags),
    /// Read or change when the workers of a running gateway count as busy
    #[command(subcommand, after_help = threshold_flags::EXAMPLES)]
    Threshold(ThresholdCommand),
    /// Check a file of tariffs, and price examples by it
    #[command(subcommand, after_help = tariff_flags::EXAMPLES)]
    Tariff(TariffCommand),
    /// Put the load and the faults of a scenario on something real, and say whether it held
    #[command(after_help = drill_flags::EXAMPLES)]
    Drill(Box<DrillFlags>),
    /// Simulate the ingestion pipeline, or executors and their tasks, in virtual time
    #[command(after_help = sim_flags::EXAMPLES)]
    Sim(SimFlags),
    /// Write, check or show the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// A part of the sandbox that the process executor starts by itself
    #[command(hide = true)]
    Launch(LaunchFlags),
}

#[derive(Debug, Args)]
pub struct LaunchFlags {
    #[arg(value_parser = launch_stage)]
    pub stage: Stage,
}

fn launch_stage(name: &str) -> Result<Stage, String> {
    Stage::from_name(name).ok_or_else(|| {
        let names = Stage::ALL.map(Stage::name).join(", ");
        format!("there is {names}; nobody but the process executor starts them")
    })
}

#[derive(Debug, Args)]
pub struct UpFlags {
    #[command(flatten)]
    pub file: FileFlag,
    #[command(flatten)]
    pub settings: SettingFlags,
}

#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Write a configuration file in which every setting is explained
    Init {
        /// Where to; - is standard output
        #[arg(value_name = "PATH", default_value = "tidegate.toml")]
        path: PathBuf,
        /// Overwrite a file that is there
        #[arg(long)]
        force: bool,
    },
    /// Say everything that is wrong with the configuration, or that it is ok
    Check {
        /// The file; without it TIDEGATE_CONFIG, or ./tidegate.toml if there is one
        #[arg(value_name = "FILE")]
        path: Option<PathBuf>,
        #[command(flatten)]
        settings: SettingFlags,
    },
    /// Show every effective value and where it comes from
    Show {
        #[command(flatten)]
        file: FileFlag,
        #[command(flatten)]
        settings: SettingFlags,
        /// As a JSON object
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub struct FileFlag {
    /// The configuration file; without it TIDEGATE_CONFIG, or ./tidegate.toml if there is one
    #[arg(long = "config", value_name = "FILE")]
    pub path: Option<PathBuf>,
}

/// Settings as they were typed. All of them are text here: they are checked together with the file and the
/// environment, so that all mistakes are told at once.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Settings")]
pub struct SettingFlags {
    /// Where requests are passed on to: http, h2c or https; may be repeated
    #[arg(long = "upstream", value_name = "URL")]
    upstreams: Vec<String>,
    /// Where requests arrive [default: 127.0.0.1:8000]
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Where health, metrics and administration answer [default: 127.0.0.1:8001]
    #[arg(long, value_name = "ADDR")]
    admin_listen: Option<String>,
    /// The part this node plays, whose preset gives the limits: gate, manager or worker
    #[arg(long)]
    role: Option<String>,
    /// Requests in flight at once, of all priorities
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    global_limit: Option<String>,
    /// Of these, how many may be High
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    high_limit: Option<String>,
    /// Of these, how many may be Normal
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    normal_limit: Option<String>,
    /// Of these, how many may be Low
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    low_limit: Option<String>,
    /// How much of the global limit Critical can use up
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    critical_reserve: Option<String>,
    /// Whether a priority may use idle places of another: strict or borrow
    #[arg(long, value_name = "POLICY")]
    sharing: Option<String>,
    /// A worker is busy above this share of its KV cache, 0.0 … 1.0
    #[arg(long, value_name = "RATIO", allow_negative_numbers = true)]
    active_decode_blocks_threshold: Option<String>,
    /// A worker is busy above this many tokens being prefilled
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    active_prefill_tokens_threshold: Option<String>,
    /// A worker gets at most this many requests at once
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    active_requests_threshold: Option<String>,
    /// Thresholds for an aim: latency, throughput or off
    #[arg(long, value_name = "PRESET")]
    busy_preset: Option<String>,
    /// Who of the workers that have room gets a request: power_of_two, round_robin, random, least_loaded, direct
    #[arg(long)]
    pick: Option<String>,
    /// The HTTP status when all workers are busy: 503, 529 or 429
    #[arg(long, value_name = "STATUS")]
    overload_status: Option<String>,
    /// Count what every limit would refuse, and refuse nothing
    #[arg(long, num_args = 0, default_missing_value = "true")]
    dry_run: Option<String>,
    /// Where usage records are kept: a folder, or postgres://user@host/database [default: tidegate-data]
    #[arg(long)]
    store: Option<String>,
    /// The file of tariffs
    #[arg(long, value_name = "FILE")]
    tariffs: Option<String>,
    /// Where frames of usage records arrive [default: 127.0.0.1:7070]
    #[arg(long, value_name = "ADDR")]
    frames_listen: Option<String>,
    /// Where lines of usage records arrive [default: 127.0.0.1:7071]
    #[arg(long, value_name = "ADDR")]
    lines_listen: Option<String>,
    /// Whether usage records are taken in beside the gateway: true or false
    #[arg(long, value_name = "SWITCH")]
    ingest: Option<String>,
    /// Whether tasks are taken beside the gateway: true or false
    #[arg(long, value_name = "SWITCH")]
    tasks: Option<String>,
    /// Where tasks are kept: a folder, or postgres://user@host/database [default: tidegate-tasks]
    #[arg(long, value_name = "STORE")]
    task_store: Option<String>,
    /// Where slots are counted: memory, or redis://host:port/db where managers share executors
    #[arg(long, value_name = "URL")]
    ledger: Option<String>,
    /// How waiting tasks come to slots: pull, optimistic, semaphore, queue or reserve
    #[arg(long)]
    placement: Option<String>,
    /// Slots of the executor in this process [default: one a core, none beside --executor-url]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    task_slots: Option<String>,
    /// An executor elsewhere that tasks are placed on; may be repeated
    #[arg(long = "executor-url", value_name = "URL")]
    executors: Vec<String>,
    /// Threads that serve; 0 is one a core
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    threads: Option<String>,
    /// What is logged: a level, or directives such as info,hyper=warn
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// The shape of log lines: text or json
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
    /// Any setting by its key, such as proxy.connect_timeout_ms=500; wins over the flags above
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_and_value)]
    set: Vec<(String, String)>,
}

/// A setting as it was typed.
#[derive(Debug, PartialEq, Eq)]
pub struct Typed<'a> {
    /// The flag, for messages.
    pub flag: String,
    /// The key it sets.
    pub key: &'a str,
    pub value: &'a str,
}

// === impl SettingFlags ===

impl SettingFlags {
    /// What was typed, in the order in which it counts.
    pub fn typed(&self) -> impl Iterator<Item = Typed<'_>> {
        let upstreams = self.upstreams.iter().map(|url| Typed::new("--upstream", "upstream", url));
        let set =
            self.set.iter().map(|(key, value)| Typed { flag: format!("--set {key}"), key, value });
        let executors =
            self.executors.iter().map(|url| Typed::new("--executor-url", "executor", url));
        upstreams.chain(executors).chain(self.named()).chain(set)
    }

    fn named(&self) -> impl Iterator<Item = Typed<'_>> {
        [
            ("--listen", "listen.address", &self.listen),
            ("--admin-listen", "listen.admin_address", &self.admin_listen),
            ("--role", "role", &self.role),
            ("--global-limit", "admission.global_limit", &self.global_limit),
            ("--high-limit", "admission.high_limit", &self.high_limit),
            ("--normal-limit", "admission.normal_limit", &self.normal_limit),
            ("--low-limit", "admission.low_limit", &self.low_limit),
            ("--critical-reserve", "admission.critical_reserve", &self.critical_reserve),
            ("--sharing", "admission.sharing", &self.sharing),
            (
                "--active-decode-blocks-threshold",
                "routing.active_decode_blocks_threshold",
                &self.active_decode_blocks_threshold,
            ),
            (
                "--active-prefill-tokens-threshold",
                "routing.active_prefill_tokens_threshold",
                &self.active_prefill_tokens_threshold,
            ),
            (
                "--active-requests-threshold",
                "routing.active_requests_threshold",
                &self.active_requests_threshold,
            ),
            ("--busy-preset", "routing.preset", &self.busy_preset),
            ("--pick", "routing.pick", &self.pick),
            ("--overload-status", "routing.overload_status", &self.overload_status),
            ("--dry-run", "dry_run", &self.dry_run),
            ("--store", "ingest.store", &self.store),
            ("--tariffs", "ingest.tariffs", &self.tariffs),
            ("--frames-listen", "ingest.frames_address", &self.frames_listen),
            ("--lines-listen", "ingest.lines_address", &self.lines_listen),
            ("--ingest", "ingest.enabled", &self.ingest),
            ("--tasks", "tasks.enabled", &self.tasks),
            ("--task-store", "tasks.store", &self.task_store),
            ("--ledger", "tasks.ledger", &self.ledger),
            ("--placement", "tasks.placement", &self.placement),
            ("--task-slots", "tasks.slots", &self.task_slots),
            ("--threads", "listen.threads", &self.threads),
            ("--log-level", "log.level", &self.log_level),
            ("--log-format", "log.format", &self.log_format),
        ]
        .into_iter()
        .filter_map(|(flag, key, value)| value.as_ref().map(|value| Typed::new(flag, key, value)))
    }
}

// === impl Typed ===

impl<'a> Typed<'a> {
    fn new(flag: &str, key: &'a str, value: &'a str) -> Self {
        Self { flag: flag.to_owned(), key, value }
    }
}

fn key_and_value(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or(
        "write KEY=VALUE, such as admission.high_limit=50; `tidegate config show` has the keys",
    )?;
    Ok((key.trim().to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use tidegate_server::config::SETTINGS;

    #[test]
    fn the_flags_are_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_flag_sets_a_setting_that_there_is() {
        let line = "tidegate up --upstream u --listen a --admin-listen b --role c --global-limit 1 \
                    --high-limit -2 --normal-limit 3 --low-limit 4 --critical-reserve 5 --sharing d \
                    --threads 6 --log-level e --log-format f --set log.level=x=y \
                    --active-decode-blocks-threshold 0.85 --active-prefill-tokens-threshold 10000 \
                    --active-requests-threshold 9 --busy-preset off --pick random --dry-run \
                    --overload-status 503 --store s --tariffs t --frames-listen f --lines-listen l \
                    --ingest true --tasks true --task-store s --ledger memory --placement pull \
                    --task-slots 2";
        let Command::Up(flags) = Cli::parse_from(line.split_whitespace()).command else {
            panic!("not up");
        };
        let typed: Vec<_> = flags.settings.typed().collect();
        assert_eq!(typed.len(), 31);
        for typed in &typed[1..] {
            assert!(SETTINGS.iter().any(|field| field.key == typed.key), "{typed:?}");
        }
        assert_eq!((typed[0].key, typed[0].value), ("upstream", "u"));
        assert_eq!((typed[30].key, typed[30].value), ("log.level", "x=y"), "--set comes last");
    }
}
