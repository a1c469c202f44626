use super::clients::Client;
use super::operators::Operator;
use super::tls::TlsFiles;
use crate::config::policies::{
    Anonymous, AuthorizationPolicy, ForwardedPolicy, HostPolicy, LogFormat, TlsMode,
};
use crate::config::schema::record;
use crate::config::value::shape::{ADDRESS, LOG_FILTER};
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;
use tidegate::admission::{PriorityLimits, RetryBounds, Role, Sharing};

record! { NodeSettings {
    /// Role of this node; the role's preset gives the limits that are not set.
    role: Role = word().or(Role::Gate).flag("role");
    /// Counts what every limit would refuse, by reason, and refuses nothing.
    dry_run: bool = switch().or(false).flag("dry-run");
    /// Folder of the stores. Default by STATE_DIRECTORY, XDG_STATE_HOME or HOME.
    state_folder: Option<PathBuf> = path().unset().example("/var/lib/tidegate").flag("state-folder");
}}

record! {
    /// Addresses, limits and TLS files of the gateway's listeners.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ListenConfig from ListenSettings {
        /// Address for client requests; any address but loopback needs TLS and a `[[client]]`.
        address: SocketAddr = text(ADDRESS).or(loopback(8000)).flag("listen") => address;
        /// Address for administration; any address but loopback needs TLS and an `[[operator]]`.
        admin_address: SocketAddr = text(ADDRESS).or(loopback(8001)).flag("admin-listen")
            => admin_address;
        /// I/O threads of the gateway; 0 starts one per core.
        threads: usize = whole(0, 256, "threads").or(0).flag("threads");
        /// The most connections that may be open at once.
        connections_max: usize = whole(1, 1_000_000, "connections").or(8_192) => connections_max;
        /// Connections beyond `connections_max` for health checks and other Critical requests alone.
        connections_reserve: usize = whole(0, 65_536, "connections").or(64)
            => connections_reserve;
        /// The longest time that the head of a request may take to arrive.
        header_timeout_ms: Duration = millis(100, 10 * MINUTE_MS).or_ms(30_000) => header_timeout;
        /// The least rate of a body while the gateway waits for its client; 0 for none.
        body_rate_min: u64 = whole(0, 100_000_000, "bytes per second").or(240) => body_rate_min;
        /// The time that the gateway waits for a body before its rate counts.
        body_grace_ms: Duration = millis(10, 10 * MINUTE_MS).or_ms(10_000) => body_grace;
        /// The longest time that a shutdown waits for requests in flight.
        shutdown_grace_ms: Duration = millis(0, HOUR_MS).or_ms(10_000) => shutdown_grace;
        /// TLS of the data port: on where a certificate is configured (auto), or plain text (off).
        tls: TlsMode = word().or(TlsMode::Auto);
        /// PEM certificate chain of the data port, instead of `tls.cert`.
        tls_cert: Option<PathBuf> = path().unset().example("/path/to/cert.pem");
        /// PEM private key of `tls_cert`.
        tls_key: Option<PathBuf> = path().unset().example("/path/to/key.pem");
        /// PEM authorities of client certificates on the data port, instead of `tls.client_ca`.
        tls_client_ca: Option<PathBuf> = path().unset().example("/path/to/clients.pem");
        /// TLS of the admin port: on where a certificate is configured (auto), or plain text (off).
        admin_tls: TlsMode = word().or(TlsMode::Auto);
        /// PEM certificate chain of the admin port, instead of `tls.cert`.
        admin_tls_cert: Option<PathBuf> = path().unset().example("/path/to/cert.pem");
        /// PEM private key of `admin_tls_cert`.
        admin_tls_key: Option<PathBuf> = path().unset().example("/path/to/key.pem");
        /// PEM authorities of client certificates on the admin port, instead of `tls.client_ca`.
        admin_tls_client_ca: Option<PathBuf> = path().unset().example("/path/to/clients.pem");
    }
    derived |settings| {
        /// I/O threads of the gateway, at least 1. Default one per core.
        threads: usize = match settings.threads.get() {
            0 => std::thread::available_parallelism().map_or(1, NonZero::get),
            threads => threads,
        };
        /// TLS files of the data port, its own or those of `[tls]`. Default none: plain text.
        tls: Option<TlsFiles> = None;
        /// TLS files of the admin port, its own or those of `[tls]`. Default none: plain text.
        admin_tls: Option<TlsFiles> = None;
    }
}

record! {
    /// Limits on requests in flight, and the retry advice of refusals.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct AdmissionConfig from AdmissionSettings {
        /// Limit on requests in flight, all priorities together.
        global_limit: u16 = whole(1, 65_535, "messages")
            .or_by_role(|role| role.limits().global_limit)
            .env("PENDING_RESPONSE_MAX_CONCURRENT").flag("global-limit");
        /// Limit on High requests in flight; 0 leaves only the global limit.
        high_limit: u16 = whole(0, 65_535, "messages").or_by_role(|role| role.limits().high)
            .env("PENDING_RESPONSE_HIGH_LIMIT").flag("high-limit");
        /// Limit on Normal requests in flight; 0 leaves only the global limit.
        normal_limit: u16 = whole(0, 65_535, "messages").or_by_role(|role| role.limits().normal)
            .env("PENDING_RESPONSE_NORMAL_LIMIT").flag("normal-limit");
        /// Limit on Low requests in flight, which are refused first; 0 leaves only the global limit.
        low_limit: u16 = whole(0, 65_535, "messages").or_by_role(|role| role.limits().low)
            .env("PENDING_RESPONSE_LOW_LIMIT").flag("low-limit");
        /// The part of the global limit that Critical can use up. Default a tenth of it.
        critical_reserve: u16 = whole(0, 65_535, "messages")
            .or_by_role(|role| role.limits().critical_reserve).flag("critical-reserve");
        /// Use of another priority's idle slots: never (strict), or while it has some (borrow).
        sharing: Sharing = word().or(Sharing::Strict).flag("sharing") => sharing;
        /// Fill of a limit from which on the gateway logs a warning.
        warn_threshold: f64 = ratio().unit("of the limit").or(0.8)
            .env("PENDING_RESPONSE_WARN_THRESHOLD") => warn_threshold;
        /// The shortest Retry-After of a refusal.
        retry_after_min_ms: Duration = millis(1, MINUTE_MS).or_ms(10);
        /// The longest Retry-After of a refusal.
        retry_after_max_ms: Duration = millis(1_000, HOUR_MS).or_ms(30_000);
    }
    derived |settings| {
        /// Limits by priority. Default the role's preset.
        limits: PriorityLimits = PriorityLimits {
            high: settings.high_limit.get(),
            normal: settings.normal_limit.get(),
            low: settings.low_limit.get(),
            global_limit: settings.global_limit.get(),
            critical_reserve: settings.critical_reserve.get(),
        };
        /// The shortest Retry-After, 1 ms … 1 min, default 50 ms; and the longest, 1 s … 1 h, default 30 s.
        retry: RetryBounds = RetryBounds {
            min: settings.retry_after_min_ms.get(),
            max: settings.retry_after_max_ms.get(),
        };
    }
}

record! {
    /// Priorities that clients may claim.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ClaimsConfig from ClaimsSettings {
        /// The highest priority that a request without a token may claim; refuse turns it away.
        anonymous: Anonymous = word().or(Anonymous::UpTo(tidegate::MessagePriority::High))
            => anonymous;
    }
    derived |_settings| {
        /// Clients known by a token, 0 … 10,000. Default none.
        clients: Vec<Client> = Vec::new();
        /// Operators known by a token, 0 … 1,000. Default none: the admin port is then open to loopback.
        operators: Vec<Operator> = Vec::new();
    }
}

record! {
    /// Timeouts, connections and headers between the gateway and its upstreams.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ProxyConfig from ProxySettings {
        /// The longest time until a connection to an upstream is established.
        connect_timeout_ms: Duration = millis(1, 10 * MINUTE_MS).or_ms(2_000) => connect_timeout;
        /// The longest time until the head of an upstream's response has arrived.
        response_timeout_ms: Duration = millis(1, DAY_MS).or_ms(120_000) => response_timeout;
        /// The longest time between two chunks of a body.
        stream_idle_timeout_ms: Duration = millis(1, DAY_MS).or_ms(300_000) => stream_idle_timeout;
        /// The most idle connections per upstream and I/O thread.
        idle_connections_max: usize = whole(0, 65_535, "connections").or(256)
            => idle_connections_max;
        /// Lifetime of an idle connection; below the 5 s after which many servers close it.
        idle_timeout_ms: Duration = millis(1, HOUR_MS).or_ms(4_000) => idle_timeout;
        /// Memory for responses that clients are slow to read; beyond it the slowest client is closed.
        buffer_mib: u64 = mebibytes(1, 1 << 20).or(256 << 20) => buffer_bytes;
        /// Time between two health checks of an upstream.
        health_interval_ms: Duration = millis(50, 10 * MINUTE_MS).or_ms(1_000) => health_interval;
        /// The Host header that an upstream receives: the client's (preserve) or its own (upstream).
        host: HostPolicy = word().or(HostPolicy::Preserve) => host;
        /// Treatment of Forwarded and X-Forwarded-*: append, replace (at the edge) or off.
        forwarded: ForwardedPolicy = word().or(ForwardedPolicy::Append) => forwarded;
        /// Authorization for upstreams: without clients' tokens (strip), as sent (pass), or own key (replace).
        authorization: AuthorizationPolicy = word().or(AuthorizationPolicy::Strip)
            => authorization;
        /// PEM bundle of trusted authorities for https upstreams. Default the system's.
        tls_ca: Option<PathBuf> = path().unset().example("/path/to/ca.pem") => tls_ca;
    }
}

record! {
    /// Level and format of the log.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct LogConfig from LogSettings {
        /// Logged events: a level, or directives such as "info,hyper=warn".
        level: String = text(LOG_FILTER).or("info".to_owned()).flag("log-level") => level;
        /// Format of log lines: for people (text) or for machines (json).
        format: LogFormat = word().or(LogFormat::Text).flag("log-format") => format;
    }
}
