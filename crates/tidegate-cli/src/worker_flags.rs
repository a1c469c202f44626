use crate::failure::Failure;
use crate::flags::SettingFlags;
use crate::sources;
use clap::{Args, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tidegate_server::worker::process::{ProcessConfig, ProcessRunner, RuntimeConfig};
use tidegate_server::worker::{ExecutorConfig, HttpRunner, MockRunner, Runner, TargetError};
use tokio::runtime::Builder;

pub const EXAMPLES: &str = "\
Examples:
  tidegate worker --max-concurrent 2                                   runs python and sh in a sandbox
  tidegate worker --executor http --target http://127.0.0.1:9000/run   passes tasks to a server of yours
  tidegate worker --executor mock --max-concurrent 3                   does nothing, for trying out
  tidegate worker --executor mock --mock-ms 0 --listen 127.0.0.1:0     on any free port, printed at the start

Then: curl -s 127.0.0.1:8083/capacity
      curl -s 127.0.0.1:8083/execute -d '{\"eval_id\": \"one\", \"code\": \"print hello\"}'
      curl -s '127.0.0.1:8083/executions/one?wait_ms=1000'

Exit codes: 0 ok, 1 failed while running or had to stop executions, 2 wrong flags.";

/// What `tidegate worker` was told.
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub struct WorkerFlags {
    /// What runs in its slots
    #[arg(long, value_name = "KIND", default_value = "process")]
    executor: Kind,
    /// Executions at once
    #[arg(long, value_name = "N", env = "MAX_CONCURRENT_EXECUTIONS", default_value_t = 1)]
    max_concurrent: u32,
    /// Where it listens: a loopback address; port 0 is any free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8083")]
    pub listen: SocketAddr,
    /// What it calls itself [default: executor- and its port]
    #[arg(long, value_name = "NAME")]
    executor_id: Option<String>,
    /// What it can run; may be repeated [default: anything]
    #[arg(long = "runtime", value_name = "NAME")]
    runtimes: Vec<String>,
    /// How long an execution may run that does not say
    #[arg(long, value_name = "MS", default_value_t = 300_000)]
    timeout_ms: u64,
    /// The most output of an execution that is kept, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20)]
    output_bytes: usize,
    /// How long executions may go on after the first signal
    #[arg(long, value_name = "MS", default_value_t = 10_000)]
    grace_ms: u64,
    /// What is logged: a level, or directives such as info,hyper=warn
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log_level: String,
    #[command(flatten)]
    process: ProcessFlags,
    #[command(flatten)]
    http: HttpFlags,
    #[command(flatten)]
    mock: MockFlags,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "With --executor process")]
struct ProcessFlags {
    /// The configuration file, for its [[runtime]]s; without it TIDEGATE_CONFIG, or ./tidegate.toml if there is
    /// one
    #[arg(long = "config", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where executions have their work folders [default: in the system's temporary folder]
    #[arg(long, value_name = "FOLDER")]
    work_folder: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "With --executor http")]
struct HttpFlags {
    /// Where executions are passed on to, by POST
    #[arg(long, value_name = "URL", required_if_eq("executor", "http"))]
    target: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "With --executor mock")]
struct MockFlags {
    /// How long an execution takes whose code does not say
    #[arg(long, value_name = "MS", default_value_t = 50)]
    mock_ms: u64,
}

/// What runs in the slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Processes of this machine, in a sandbox
    Process,
    /// A server of yours
    Http,
    /// Nothing, for drills and benchmarks
    Mock,
}

// === impl WorkerFlags ===

impl WorkerFlags {
    pub fn config(&self) -> ExecutorConfig {
        let id = self.executor_id.clone().unwrap_or_else(|| match self.listen.port() {
            // Nobody knows the port yet, and a name that others have too would be worse than one that changes.
            0 => format!("executor-p{}", std::process::id()),
            port => format!("executor-{port}"),
        });
        ExecutorConfig {
            timeout_default: Duration::from_millis(self.timeout_ms),
            output_bytes_max: self.output_bytes,
            ..ExecutorConfig::new(id, self.max_concurrent)
        }
    }

    pub fn runner(&self) -> Result<Runner, Failure> {
        let runtimes = self.runtimes.clone();
        match self.executor {
            Kind::Process => self.process_runner(),
            Kind::Mock => {
                let takes = Duration::from_millis(self.mock.mock_ms);
                Ok(Runner::Mock(MockRunner::new(takes, runtimes)))
            }
            Kind::Http => {
                let target = self.http.target.as_deref().unwrap_or_default();
                match HttpRunner::new(target, runtimes) {
                    Ok(http) => Ok(Runner::Http(http)),
                    Err(TargetError::Url(mistake)) => Err(Failure::Usage(format!("--{mistake}"))),
                    Err(error) => Err(Failure::Runtime(format!("--target {target}: {error}"))),
                }
            }
        }
    }

    /// Takes a moment: every layer and every runtime is tried.
    fn process_runner(&self) -> Result<Runner, Failure> {
        let loaded = sources::load(self.process.config.as_deref(), &SettingFlags::default())?;
        let declared = &loaded.loaded.config.tasks;
        let mut config = ProcessConfig {
            runtimes: declared.runtimes.iter().map(RuntimeConfig::from).collect(),
            ..ProcessConfig::default()
        };
        let folder = self.process.work_folder.as_ref().or(declared.work_folder.as_ref());
        if let Some(folder) = folder {
            config.folder.clone_from(folder);
        }
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::Runtime(error.to_string()))?;
        let runner = runtime.block_on(ProcessRunner::new(config));
        let runner = runner.map_err(|error| Failure::Runtime(error.to_string()))?;
        let missing = self.runtimes.iter().find(|name| !runner.runtimes().contains(name));
        match missing {
            Some(name) => Err(Failure::Usage(format!(
                "--runtime {name}: there are {}; declare others as [[runtime]] in the configuration",
                runner.runtimes().join(", ")
            ))),
            None => Ok(Runner::Process(Box::new(runner))),
        }
    }

    pub fn grace(&self) -> Duration {
        Duration::from_millis(self.grace_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::{Cli, Command};
    use clap::Parser;

    fn parsed(line: &str) -> WorkerFlags {
        let Command::Worker(flags) = Cli::parse_from(line.split_whitespace()).command else {
            panic!("not worker");
        };
        flags
    }

    #[test]
    fn every_flag_counts() {
        let flags = parsed(
            "tidegate worker --executor mock --max-concurrent 7 --listen 127.0.0.1:1 --executor-id a \
             --runtime x --runtime y --timeout-ms 5 --output-bytes 6 --grace-ms 8 --mock-ms 9",
        );
        let config = flags.config();
        assert_eq!((config.id.as_str(), config.max_concurrent), ("a", 7));
        assert_eq!(config.timeout_default, Duration::from_millis(5));
        assert_eq!(config.output_bytes_max, 6);
        assert_eq!((flags.grace(), flags.listen.port()), (Duration::from_millis(8), 1));
        let runner = flags.runner().unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!((runner.kind(), runner.runtimes().len()), ("mock", 2));
        assert_eq!(flags.mock.mock_ms, 9);
    }

    #[test]
    fn it_is_named_by_its_port() {
        assert_eq!(parsed("tidegate worker --listen 127.0.0.1:99").config().id, "executor-99");
        assert_ne!(parsed("tidegate worker --listen 127.0.0.1:0").config().id, "executor-0");
    }
}
