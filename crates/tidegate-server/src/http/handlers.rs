use super::ResponseBody;
use super::error_response::{ErrorKind, ErrorResponse};
use http::Response;
use std::net::SocketAddr;
use tidegate::admission::MessageKind;

/// An endpoint of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handler {
    /// Liveness of the process.
    HealthLive,
    /// Readiness for work.
    HealthReady,
    /// Prometheus series.
    Metrics,
    /// The typed snapshots, as JSON.
    Stats,
    /// Busy thresholds of upstreams.
    BusyThreshold,
    /// Sums of usage and their costs.
    Usage,
    /// The stream of decisions, on the operators' port alone.
    Decisions,
}

// === impl Handler ===

impl Handler {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::HealthLive,
        Self::HealthReady,
        Self::Metrics,
        Self::Stats,
        Self::BusyThreshold,
        Self::Usage,
        Self::Decisions,
    ];

    /// The path.
    #[must_use]
    pub const fn path(self) -> &'static str {
        match self {
            Self::HealthLive => "/health/live",
            Self::HealthReady => "/health/ready",
            Self::Metrics => "/metrics",
            Self::Stats => "/v1/stats",
            Self::BusyThreshold => "/busy_threshold",
            Self::Usage => "/v1/usage",
            Self::Decisions => "/v1/decisions",
        }
    }

    /// The kind of its requests, for classification.
    #[must_use]
    pub const fn kind(self) -> MessageKind {
        match self {
            Self::HealthLive | Self::HealthReady => MessageKind::HealthProbe,
            Self::Metrics => MessageKind::MetricsScrape,
            Self::Stats => MessageKind::StatsRead,
            Self::Usage => MessageKind::UsageRead,
            Self::Decisions => MessageKind::DecisionsRead,
            Self::BusyThreshold => MessageKind::ThresholdChange,
        }
    }

    /// Returns true if the endpoint shows more than that the gateway is there.
    #[must_use]
    pub const fn is_telling(self) -> bool {
        match self {
            Self::HealthLive | Self::HealthReady => false,
            Self::Metrics | Self::Stats | Self::BusyThreshold => true,
            Self::Usage | Self::Decisions => true,
        }
    }

    /// Returns true if an admin port at this address answers without a token: health everywhere, and scrapes on
    /// loopback, where a scraper needs no token that could change something.
    #[must_use]
    pub fn is_open_at(self, admin: SocketAddr) -> bool {
        let is_local = admin.ip().to_canonical().is_loopback();
        !self.is_telling() || (self == Self::Metrics && is_local)
    }

    /// Returns true if only the operators' port has the endpoint. On the data port its path is an upstream's.
    #[must_use]
    pub const fn is_operators_alone(self) -> bool {
        matches!(self, Self::Decisions)
    }

    /// The response to a request that would change something at an endpoint that is only read.
    #[must_use]
    pub fn read_only() -> Response<ResponseBody> {
        let kind = ErrorKind::MethodNotAllowed("GET, HEAD");
        let message = "this endpoint is read only: use GET or HEAD";
        ErrorResponse::new(kind, "read_only", message).json()
    }

    /// The response of an admin port to a path that it does not know.
    #[must_use]
    pub fn not_found() -> Response<ResponseBody> {
        let paths = Self::ALL.map(Self::path).join(", ");
        let message = format!("this is the admin port; it answers {paths}");
        ErrorResponse::new(ErrorKind::UnknownPath, "unknown_path", &message).json()
    }

    /// The handler of this path. Health also answers at the paths that orchestrators ask by default.
    #[must_use]
    pub fn of(path: &str) -> Option<Self> {
        match path {
            "/livez" | "/healthz" => Some(Self::HealthLive),
            "/readyz" => Some(Self::HealthReady),
            _ => Self::ALL.into_iter().find(|handler| handler.path() == path),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate::{MessageClass, MessagePriority};

    #[test]
    fn every_registered_handler_is_control_and_so_critical() {
        for handler in Handler::ALL {
            assert_eq!(Handler::of(handler.path()), Some(handler));
            assert_eq!(handler.kind().class(), MessageClass::Control, "{handler:?}");
            assert_eq!(handler.kind().class().priority(), MessagePriority::Critical, "{handler:?}");
        }
    }

    #[test]
    fn beyond_loopback_health_alone_is_open() {
        for (admin, open) in [
            ("127.0.0.1:1", &[Handler::HealthLive, Handler::HealthReady, Handler::Metrics][..]),
            (
                "[::ffff:127.0.0.1]:1",
                &[Handler::HealthLive, Handler::HealthReady, Handler::Metrics],
            ),
            ("0.0.0.0:1", &[Handler::HealthLive, Handler::HealthReady]),
            ("[::]:1", &[Handler::HealthLive, Handler::HealthReady]),
        ] {
            let admin: SocketAddr = admin.parse().unwrap();
            let is_open = |handler: &Handler| handler.is_open_at(admin);
            let found: Vec<_> = Handler::ALL.into_iter().filter(is_open).collect();
            assert_eq!(found, open, "{admin}");
        }
    }

    #[test]
    fn health_answers_where_orchestrators_ask() {
        assert_eq!(Handler::of("/livez"), Some(Handler::HealthLive));
        assert_eq!(Handler::of("/healthz"), Some(Handler::HealthLive));
        assert_eq!(Handler::of("/readyz"), Some(Handler::HealthReady));
    }

    #[test]
    fn paths_match_whole_and_only_so() {
        for path in ["/", "/metrics/", "/health", "/v1/stats/x", "//metrics", "/METRICS", ""] {
            assert_eq!(Handler::of(path), None, "{path}");
        }
    }
}
