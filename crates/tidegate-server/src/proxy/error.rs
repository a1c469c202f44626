use crate::upstream::{ConnectError, LineRefusal};
use std::time::Duration;
use tidegate::routing::{Overload, RouteError};

/// Why a request got no answer from an upstream.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// The request has passed this very gateway before.
    #[error(
        "the request came back to the gateway that sent it: an upstream points at the gateway itself"
    )]
    Loop,
    /// `CONNECT` asks for a tunnel, which a reverse proxy does not give.
    #[error("CONNECT is not served by a reverse proxy")]
    ConnectMethod,
    /// HTTP/1.1 without exactly one `Host`.
    #[error("the request needs exactly one Host field")]
    BadHost,
    /// The target makes no URI for the upstream.
    #[error("the request's target can't be passed on")]
    BadTarget,
    /// All workers are busy. Nothing was sent.
    #[error("{0}")]
    Overloaded(Overload),
    /// No worker is there that could take it. Nothing was sent.
    #[error("{0}")]
    NoWorkers(RouteError),
    /// The worker that the request names is not one that it could go to.
    #[error("there is no worker {name} for this request")]
    UnknownWorker {
        /// Its name.
        name: String,
    },
    /// It may not wait for its upstream, or has waited for too long. Nothing was sent.
    #[error("upstream {upstream} can't take the request now: {why}")]
    Outbox {
        /// The upstream's name.
        upstream: String,
        /// Which bound it met.
        why: LineRefusal,
        /// When to come back.
        retry_after: Duration,
    },
    /// There is nobody left to try.
    #[error("no upstream is left to try")]
    NoUpstream,
    /// No connection; nothing was sent.
    #[error("no connection to upstream {upstream}: {source}")]
    Connect {
        /// The upstream's name.
        upstream: String,
        /// Why not.
        source: ConnectError,
    },
    /// The request was sent, in whole or in part, and the connection failed before an answer.
    #[error("upstream {upstream} broke the connection before it answered: {source}")]
    Reset {
        /// The upstream's name.
        upstream: String,
        /// How.
        source: hyper::Error,
    },
    /// The request was sent and no answer came in time.
    #[error("upstream {upstream} did not answer within {after:?}")]
    ResponseTimeout {
        /// The upstream's name.
        upstream: String,
        /// How long it had.
        after: Duration,
    },
    /// The upstream's answer can't be passed on.
    #[error("upstream {upstream} sent an answer that can't be passed on: {why}")]
    BadAnswer {
        /// The upstream's name.
        upstream: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The body is coded in a way that can't be undone here.
    #[error("only the transfer coding `chunked` is served")]
    TransferCoding,
    /// The client's request broke off or was malformed in its body.
    #[error("the request's body broke off or is malformed")]
    UploadBroken,
    /// The client stopped sending its request.
    #[error("the client sent nothing of its request for {after:?}")]
    UploadStalled {
        /// How long it had.
        after: Duration,
    },
}

// === impl ProxyError ===

impl ProxyError {
    /// Whether the client brought it about, and no upstream.
    #[must_use]
    pub fn is_clients(&self) -> bool {
        match self {
            Self::Loop | Self::ConnectMethod | Self::BadHost | Self::BadTarget => true,
            Self::UploadStalled { .. } | Self::UploadBroken | Self::TransferCoding => true,
            Self::UnknownWorker { .. } => true,
            Self::Overloaded(_) | Self::NoWorkers(_) | Self::Outbox { .. } => false,
            Self::NoUpstream | Self::Connect { .. } | Self::Reset { .. } => false,
            Self::ResponseTimeout { .. } | Self::BadAnswer { .. } => false,
        }
    }
}
