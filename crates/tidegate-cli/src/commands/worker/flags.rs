use crate::admin_client::{TOKEN_VARIABLE, TlsFlags, Token};
use crate::cluster_node::JoinFlags;
use clap::{Args, ValueEnum};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use tidegate_server::config::TokenDigest;
use tidegate_server::tasks::worker::ManagerTarget;

pub const EXAMPLES: &str = "\
Examples:
  tidegate worker --manager 127.0.0.1:8002 --max-concurrent 2
                                                       dials a manager, opens no port
  TIDEGATE_JOIN=TOKEN@10.0.0.1:8002 tidegate worker    joins a cluster; later starts: tidegate worker
  tidegate worker --max-concurrent 2                   runs python and sh in a sandbox
  tidegate worker --executor http --target http://127.0.0.1:9000/run
                                                       forwards tasks to your server
  tidegate worker --executor mock --max-concurrent 3   only waits, for tests
  tidegate worker --listen 127.0.0.1:0                 on a free port, printed at the start
  TIDEGATE_WORKER_TOKEN=... tidegate worker --listen 10.0.0.7:8083 --tls-cert c.pem --tls-key k.pem
                                                       for managers on other machines

Then: curl -s 127.0.0.1:8083/capacity
      curl -s 127.0.0.1:8083/execute -d '{\"eval_id\": \"one\", \"code\": \"print(6 * 7)\"}'
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
    /// Manager to dial, HOST:PORT of its port for workers; then the worker opens no port
    #[arg(long, value_name = "ADDR")]
    pub manager: Option<ManagerTarget>,
    /// Listen address; beyond loopback it needs TLS and a token; port 0 picks a free port [default:
    /// 127.0.0.1:8083]
    #[arg(long, value_name = "ADDR")]
    pub listen: Option<SocketAddr>,
    /// Folder with the certificate of a node of a cluster [default: as that of a manager]
    #[arg(long, value_name = "FOLDER")]
    pub state_folder: Option<PathBuf>,
    /// Executor name, unique among those of a manager [default: executor-PORT, with --manager the host name]
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
    pub join: JoinFlags,
    #[command(flatten)]
    pub link: LinkFlags,
    #[command(flatten)]
    pub access: AccessFlags,
    #[command(flatten)]
    pub process: ProcessFlags,
    #[command(flatten)]
    pub http: HttpFlags,
    #[command(flatten)]
    pub mock: MockFlags,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "With --manager")]
pub struct LinkFlags {
    /// Token of a [[worker]] of the manager; other users see arguments, so prefer the variable
    #[arg(long, value_name = "TOKEN", env = TOKEN_VARIABLE, hide_env_values = true)]
    pub token: Option<Token>,
    #[command(flatten)]
    pub tls: TlsFlags,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Access")]
pub struct AccessFlags {
    /// TLS: with --tls-cert (auto), or plain text, also beyond loopback (off)
    #[arg(long, value_name = "MODE", default_value = "auto")]
    pub tls: Tls,
    /// PEM certificate chain
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// PEM private key of --tls-cert
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// PEM authorities of client certificates, which managers must then show
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_client_ca: Option<PathBuf>,
    /// SHA-256 of the token that managers must send; or the token itself in TIDEGATE_WORKER_TOKEN
    #[arg(long, value_name = "HEX", value_parser = digest)]
    pub token_sha256: Option<TokenDigest>,
}

/// Listen address without `--listen`.
const LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8_083);

// === impl WorkerFlags ===

impl WorkerFlags {
    /// Address of the port of a worker that listens.
    pub fn listen(&self) -> SocketAddr {
        self.listen.unwrap_or(LISTEN)
    }
}

/// TLS of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Tls {
    /// With a certificate, if there is one
    Auto,
    /// Plain text
    Off,
}

fn digest(text: &str) -> Result<TokenDigest, String> {
    TokenDigest::from_hex(text).ok_or_else(|| "expected 64 hexadecimal digits".to_owned())
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
