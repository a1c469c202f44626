use crate::config::OverloadStatus;
use http::StatusCode;

/// The kind of a failure. Decides the HTTP status, the `type` in the body and the code of gRPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request is malformed.
    BadRequest,
    /// A token is missing or unknown.
    Unauthorized,
    /// The request is understood and not allowed.
    Forbidden,
    /// The object that the request names does not exist.
    NotFound,
    /// The path is unknown.
    UnknownPath,
    /// The path does not answer this method; with the methods that it does answer, where they are known.
    MethodNotAllowed(&'static str),
    /// The client sent its request too slowly.
    RequestTimeout,
    /// The request contradicts the state of what it names.
    Conflict,
    /// The object that the request names has existed.
    Gone,
    /// The body is too large.
    TooLarge,
    /// The body is of a content type that is not read.
    UnsupportedMediaType,
    /// A field has a value that can't be.
    Unprocessable,
    /// The request has passed this gateway before.
    Loop,
    /// The request needs a part of HTTP that is not implemented.
    NotImplemented,
    /// An upstream failed or answered with something that can't be passed on.
    BadGateway,
    /// No connection to an upstream could be opened in time.
    ConnectTimeout,
    /// An upstream did not answer in time.
    ResponseTimeout,
    /// A part of the node is unavailable.
    Unavailable,
    /// A limit refused the request.
    Exhausted,
    /// Every upstream is busy; the configuration names the status.
    Overloaded(OverloadStatus),
    /// No upstream is up.
    NoUpstreams,
}

/// A canonical code of gRPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GrpcCode {
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    ResourceExhausted = 8,
    Unimplemented = 12,
    Unavailable = 14,
    Unauthenticated = 16,
}

// === impl ErrorKind ===

impl ErrorKind {
    /// The status, the `type` in the body, and the code of gRPC.
    pub(super) fn describe(self) -> (StatusCode, &'static str, GrpcCode) {
        use GrpcCode::*;
        match self {
            Self::BadRequest => (StatusCode::BAD_REQUEST, "bad_request", InvalidArgument),
            Self::Unauthorized => (StatusCode::UNAUTHORIZED, "unauthorized", Unauthenticated),
            Self::Forbidden => (StatusCode::FORBIDDEN, "forbidden", InvalidArgument),
            Self::NotFound => (StatusCode::NOT_FOUND, "not_found", InvalidArgument),
            Self::UnknownPath => (StatusCode::NOT_FOUND, "not_found", Unimplemented),
            Self::MethodNotAllowed(_) => {
                (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", Unimplemented)
            }
            Self::RequestTimeout => {
                (StatusCode::REQUEST_TIMEOUT, "request_timeout", DeadlineExceeded)
            }
            Self::Conflict => (StatusCode::CONFLICT, "conflict", InvalidArgument),
            Self::Gone => (StatusCode::GONE, "gone", InvalidArgument),
            Self::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, "too_large", InvalidArgument),
            Self::UnsupportedMediaType => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", InvalidArgument)
            }
            Self::Unprocessable => {
                (StatusCode::UNPROCESSABLE_ENTITY, "unprocessable_entity", InvalidArgument)
            }
            Self::Loop => (StatusCode::LOOP_DETECTED, "loop_detected", Unavailable),
            Self::NotImplemented => (StatusCode::NOT_IMPLEMENTED, "not_implemented", Unimplemented),
            Self::BadGateway => (StatusCode::BAD_GATEWAY, "bad_gateway", Unavailable),
            Self::ConnectTimeout => (StatusCode::GATEWAY_TIMEOUT, "gateway_timeout", Unavailable),
            Self::ResponseTimeout => {
                (StatusCode::GATEWAY_TIMEOUT, "gateway_timeout", DeadlineExceeded)
            }
            Self::Unavailable => {
                (StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", Unavailable)
            }
            Self::Exhausted => {
                (StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", ResourceExhausted)
            }
            Self::Overloaded(status) => {
                (overload_status(status), "service_unavailable", ResourceExhausted)
            }
            Self::NoUpstreams => {
                (StatusCode::SERVICE_UNAVAILABLE, "no_upstreams_available", Unavailable)
            }
        }
    }
}

fn overload_status(status: OverloadStatus) -> StatusCode {
    match status {
        OverloadStatus::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        OverloadStatus::Overloaded => {
            StatusCode::from_u16(529).unwrap_or(StatusCode::SERVICE_UNAVAILABLE)
        }
        OverloadStatus::TooMany => StatusCode::TOO_MANY_REQUESTS,
    }
}
