use crate::http::Rejection;
use crate::http::ResponseBody;
use crate::http::client::{ClientError, ConnectError};
use crate::http::error_response::{ErrorKind, ErrorResponse, ResponseFormat};
use http::Response;
use std::time::Duration;

/// A request without a response from an upstream.
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
    #[error(
        "the request's target can't be passed on: expected a path that starts with /, or an http:// or https:// URL \
         without user and password"
    )]
    BadTarget,
    /// A limit refused it. Nothing was sent.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The upstream that the request names is not one that it could go to.
    #[error("there is no upstream {name} for this request")]
    UnknownUpstream {
        /// Its name.
        name: String,
    },
    /// There is nobody left to try.
    #[error("no upstream is left to try")]
    NoUpstream,
    /// No connection; nothing was sent.
    #[error("no connection to upstream {upstream}: {source}")]
    Connect {
        /// The upstream's name.
        upstream: String,
        /// The cause.
        source: ConnectError,
    },
    /// The request was sent, in whole or in part, and the connection failed before an answer.
    #[error("upstream {upstream} broke the connection before it answered: {source}")]
    Reset {
        /// The upstream's name.
        upstream: String,
        /// The failure.
        source: ClientError,
    },
    /// The request was sent and no answer came in time.
    #[error("upstream {upstream} did not answer within {after:?}")]
    ResponseTimeout {
        /// The upstream's name.
        upstream: String,
        /// The time that it had.
        after: Duration,
    },
    /// The upstream's answer can't be passed on.
    #[error("upstream {upstream} sent an answer that can't be passed on: {why}")]
    BadAnswer {
        /// The upstream's name.
        upstream: String,
        /// The fault of the response.
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
        /// The time that it had.
        after: Duration,
    },
    /// The client sends its request too slowly.
    #[error("the client sent its request at less than {min} bytes per second")]
    UploadSlow {
        /// The least rate.
        min: u64,
    },
}

// === impl ProxyError ===

impl ProxyError {
    /// Returns true if the client caused the error, and no upstream.
    #[must_use]
    pub fn is_clients(&self) -> bool {
        match self {
            Self::Loop | Self::ConnectMethod | Self::BadHost | Self::BadTarget => true,
            Self::UploadStalled { .. } | Self::UploadSlow { .. } | Self::UploadBroken => true,
            Self::TransferCoding => true,
            Self::UnknownUpstream { .. } => true,
            Self::Rejected(_) | Self::NoUpstream | Self::Connect { .. } | Self::Reset { .. } => {
                false
            }
            Self::ResponseTimeout { .. } | Self::BadAnswer { .. } => false,
        }
    }

    /// The response to a request that failed so. On an exposed port it names no upstream and no system error; the
    /// log does.
    #[must_use]
    pub fn respond(&self, exposed: bool, format: ResponseFormat) -> Response<ResponseBody> {
        let (kind, reason) = self.kind();
        tracing::debug!(error = %self, reason, "a request failed");
        let message = match exposed && !self.is_clients() {
            true => "no answer could be had from an upstream".to_owned(),
            false => self.to_string(),
        };
        ErrorResponse::new(kind, reason, &message).respond(format)
    }

    /// The kind of the response, and the reason's name in metrics and responses.
    #[must_use]
    pub fn kind(&self) -> (ErrorKind, &'static str) {
        match self {
            Self::Loop => (ErrorKind::Loop, "loop"),
            // The other methods are the upstreams' to allow.
            Self::ConnectMethod => (ErrorKind::MethodNotAllowed(""), "connect_method"),
            Self::BadHost => (ErrorKind::BadRequest, "bad_host"),
            Self::BadTarget => (ErrorKind::BadRequest, "bad_target"),
            Self::Rejected(rejection) => (ErrorKind::Exhausted, rejection.reason().name()),
            Self::UnknownUpstream { .. } => (ErrorKind::BadRequest, "unknown_upstream"),
            Self::NoUpstream => (ErrorKind::BadGateway, "no_upstream"),
            Self::Connect { source: ConnectError::Timeout(_), .. } => {
                (ErrorKind::ConnectTimeout, "connect_timeout")
            }
            Self::Connect { .. } => (ErrorKind::BadGateway, "connect_failed"),
            Self::Reset { .. } => (ErrorKind::BadGateway, "upstream_reset"),
            Self::ResponseTimeout { .. } => (ErrorKind::ResponseTimeout, "response_timeout"),
            Self::BadAnswer { .. } => (ErrorKind::BadGateway, "bad_answer"),
            Self::TransferCoding => (ErrorKind::NotImplemented, "transfer_coding"),
            Self::UploadBroken => (ErrorKind::BadRequest, "upload_broken"),
            Self::UploadStalled { .. } => (ErrorKind::RequestTimeout, "upload_stalled"),
            Self::UploadSlow { .. } => (ErrorKind::RequestTimeout, "upload_slow"),
        }
    }
}
