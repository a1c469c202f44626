use clap::{Args, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;

pub const EXAMPLES: &str = "\
Examples:
  tidegate worker --max-concurrent 2                   runs python and sh in a sandbox
  tidegate worker --executor http --target http://127.0.0.1:9000/run
                                                       forwards tasks to your server
  tidegate worker --executor mock --max-concurrent 3   only waits, for tests
  tidegate worker --listen 127.0.0.1:0                 on a free port, printed at the start

Then: curl -s 127.0.0.1:8083/capacity
      curl -s 127.0.0.1:8083/execute -d '{\"eval_id\": \"one\", \"code\": \"print hello\"}'
      curl -s '127.0.0.1:8083/executions/one?wait_ms=1000'

Exit codes: 0 ok, 1 failed while running or stopped executions at the end of the grace time, \
2 invalid flags.";

/// Flags of `tidegate worker`.
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub struct WorkerFlags {
    /// Kind of executor
    #[arg(long, value_name = "KIND", default_value = "process")]
    pub executor: Kind,
    /// Slots: concurrent executions
    #[arg(long, value_name = "N", env = "MAX_CONCURRENT_EXECUTIONS", default_value_t = 1)]
    pub max_concurrent: u32,
    /// Listen address, loopback only; port 0 picks a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8083")]
    pub listen: SocketAddr,
    /// Executor name [default: executor-PORT]
    #[arg(long, value_name = "NAME")]
    pub executor_id: Option<String>,
    /// Runtime to offer; repeatable [default: all]
    #[arg(long = "runtime", value_name = "NAME")]
    pub runtimes: Vec<String>,
    /// Timeout of executions that set none
    #[arg(long, value_name = "MS", default_value_t = 300_000)]
    pub timeout_ms: u64,
    /// Limit of stored output per execution, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1 << 20)]
    pub output_bytes: usize,
    /// Grace time of running executions after the first signal
    #[arg(long, value_name = "MS", default_value_t = 10_000)]
    pub grace_ms: u64,
    /// Log level, or directives such as info,hyper=warn
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log_level: String,
    #[command(flatten)]
    pub process: ProcessFlags,
    #[command(flatten)]
    pub http: HttpFlags,
    #[command(flatten)]
    pub mock: MockFlags,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "With --executor process")]
pub struct ProcessFlags {
    /// Configuration file with [[runtime]] entries; without it TIDEGATE_CONFIG, else ./tidegate.toml if it exists
    #[arg(long = "config", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Folder for the work folders of executions [default: the system's temporary folder]
    #[arg(long, value_name = "FOLDER")]
    pub work_folder: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "With --executor http")]
pub struct HttpFlags {
    /// URL that gets executions by POST
    #[arg(long, value_name = "URL", required_if_eq("executor", "http"))]
    pub target: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "With --executor mock")]
pub struct MockFlags {
    /// Duration of executions whose code sets none
    #[arg(long, value_name = "MS", default_value_t = 50)]
    pub mock_ms: u64,
}

/// Kind of executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Local processes in a sandbox
    Process,
    /// Your HTTP server
    Http,
    /// No code: only waits, for drills and benchmarks
    Mock,
}
