use super::{
    ClaimsConfig, IngestConfig, Loader, Mistakes, OutboxConfig, RouteRule, RoutingConfig,
    TasksConfig, UpstreamTarget,
};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tidegate::admission::{PriorityLimits, RetryBounds, Role, Sharing};

/// Everything a gateway is told at start, checked.
///
/// [`Config::default`] is the `gate` preset without upstreams; [`Loader`] builds one from a file, the
/// environment and flags.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The part this node plays: its preset gives the limits that are not set. Default `gate`.
    pub role: Role,
    /// Whether limits only count what they would refuse. Default false.
    pub dry_run: bool,
    /// Where it listens and how it stops.
    pub listen: ListenConfig,
    /// Who may execute now.
    pub admission: AdmissionConfig,
    /// Who may claim which priority.
    pub claims: ClaimsConfig,
    /// Rules that give requests a priority, in order; the first that matches decides. Default none.
    pub routes: Vec<RouteRule>,
    /// Which worker gets a request, and when all are too busy.
    pub routing: RoutingConfig,
    /// What waits for an upstream.
    pub outbox: OutboxConfig,
    /// What is proxied to, 0 … `outbox.max_destinations`. Default none.
    pub upstreams: Vec<UpstreamTarget>,
    /// How it is proxied.
    pub proxy: ProxyConfig,
    /// Where usage records come in, and where they are kept.
    pub ingest: IngestConfig,
    /// Tasks: where they are kept, and who runs them.
    pub tasks: TasksConfig,
    /// What is logged.
    pub log: LogConfig,
}

/// Where the gateway listens and how it stops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenConfig {
    /// For requests. Default `127.0.0.1:8000`; anything but loopback needs a client with a token.
    pub address: SocketAddr,
    /// For health, metrics and administration; always loopback. Default `127.0.0.1:8001`.
    pub admin_address: SocketAddr,
    /// Threads that serve, 0 … 256. Default 0, one a core; a loaded configuration has that resolved, so that
    /// it says at least 1.
    pub threads: usize,
    /// Connections open at once, 1 … 1,000,000. Default 8,192.
    pub connections_max: usize,
    /// How long a request's head may take, 100 ms … 10 min. Default 30 s.
    pub header_timeout: Duration,
    /// How long a shutdown waits for what is in flight, 0 … 1 h. Default 10 s.
    pub shutdown_grace: Duration,
    /// Certificate and key to serve TLS with. Default none: plain text.
    pub tls: Option<TlsFiles>,
}

/// The files of a TLS server, PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate chain, the server's own first.
    pub cert: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// Who may execute now, and what the others are told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdmissionConfig {
    /// Places by priority. Default the role's preset.
    pub limits: PriorityLimits,
    /// What a priority may use beyond its own limit. Default strict.
    pub sharing: Sharing,
    /// Fill of a limit that is worth a warning, 0.0 … 1.0. Default 0.8.
    pub warn_threshold: f64,
    /// The shortest advice to come back, 1 ms … 1 min, default 50 ms; and the longest, 1 s … 1 h, default
    /// 30 s.
    pub retry: RetryBounds,
}

/// How requests are passed on to upstreams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyConfig {
    /// Until a connection to an upstream stands, 1 ms … 10 min. Default 2 s.
    pub connect_timeout: Duration,
    /// Until the head of the response is there, 1 ms … 24 h. Default 2 min.
    pub response_timeout: Duration,
    /// Between two pieces of a body, 1 ms … 24 h. Default 5 min.
    pub stream_idle_timeout: Duration,
    /// Idle connections kept for each upstream and thread, 0 … 65,535. Default 256.
    pub idle_connections_max: usize,
    /// How long an idle connection is kept, 1 ms … 1 h. Default 4 s: below the 5 s after which many servers
    /// close, so that a request is not sent into a closing connection.
    pub idle_timeout: Duration,
    /// Between two health checks of an upstream, 50 ms … 10 min. Default 1 s.
    pub health_interval: Duration,
    /// Which `Host` the upstream sees. Default `preserve`.
    pub host: HostPolicy,
    /// What happens to `Forwarded` and `X-Forwarded-*`. Default `append`.
    pub forwarded: ForwardedPolicy,
    /// PEM bundle to trust for https upstreams. Default the system's.
    pub tls_ca: Option<PathBuf>,
}

/// Which `Host` an upstream sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostPolicy {
    /// The one the client sent.
    #[default]
    Preserve,
    /// The upstream's own host and port.
    Upstream,
}

/// What happens to the headers that tell an upstream about the client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ForwardedPolicy {
    /// The client is added to what the request carries: right behind another proxy.
    #[default]
    Append,
    /// What the request carries is dropped and the client written: right at the edge, where it can be forged.
    Replace,
    /// The headers pass as they are and none is added.
    Off,
}

/// What is logged, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// `error`, `warn`, `info`, `debug`, `trace`, `off`, or directives such as `info,hyper=warn`. Default
    /// `info`.
    pub level: String,
    /// Default text.
    pub format: LogFormat,
}

/// The shape of a log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

// === impl Config ===

impl Config {
    /// The configuration that this TOML text describes, over the defaults; neither the environment nor flags
    /// are asked.
    ///
    /// # Errors
    ///
    /// Every mistake in the text, not only the first.
    ///
    /// ```
    /// use tidegate_server::config::Config;
    ///
    /// let config = Config::from_toml("[admission]\nglobal_limit = 64\nhigh_limit = 32")?;
    /// assert_eq!(config.admission.limits.high, 32);
    ///
    /// let mistakes = Config::from_toml("[admission]\nhihg_limit = 32\nsharing = 1").unwrap_err();
    /// assert_eq!(mistakes.len(), 2);
    /// assert!(mistakes.to_string().contains("did you mean admission.high_limit?"));
    /// # Ok::<(), tidegate_server::config::Mistakes>(())
    /// ```
    pub fn from_toml(text: &str) -> Result<Self, Mistakes> {
        Loader::new().file("<toml>", text).load().map(|loaded| loaded.config)
    }
}

impl Default for Config {
    fn default() -> Self {
        super::assemble::defaults()
    }
}
