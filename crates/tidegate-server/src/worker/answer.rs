//! The one place where something that an executor can't do becomes an HTTP status.

use super::error::{ExecuteError, ReserveError};
use super::parse::ParseError;
use crate::control::json_response;
use crate::proxy::GatewayBody;
use http::header::{self, HeaderValue};
use http::{Response, StatusCode};
use serde_json::json;
use std::time::Duration;
use tidegate::capacity::{ExecuteRefused, ReserveRefused};
use tidegate::task::{ExecutionKey, IdError, SpecError};

/// Why a request is not answered as it asked.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(super) enum Problem {
    #[error(transparent)]
    Execute(#[from] ExecuteError),
    #[error(transparent)]
    Reserve(#[from] ReserveError),
    #[error(transparent)]
    Parse(#[from] ParseError),
    #[error("the id of an execution: {0}")]
    Id(#[from] IdError),
    #[error("there is no execution {0}; it may have been forgotten since it ended")]
    UnknownExecution(ExecutionKey),
    #[error("there is nothing here: see /capacity, /execute, /reserve and /executions/{{id}}")]
    UnknownPath,
    #[error("this path answers to {allow}")]
    Method { allow: &'static str },
    #[error("the body has more than {bytes_max} bytes")]
    TooLarge { bytes_max: usize },
    #[error("the body broke off, or did not come in time")]
    Stalled,
    #[error("the request comes from a page of another origin")]
    CrossOrigin,
}

// === impl Problem ===

impl Problem {
    /// In the shape that FastAPI's clients know, with what is ours beside it.
    pub(super) fn answer(&self) -> Response<GatewayBody> {
        let (status, message) = (self.status(), self.to_string());
        let retry_after = self.retry_after();
        let mut body = json!({
            "detail": message,
            "error": { "type": kind(status), "reason": self.reason(), "message": message },
        });
        if let Some(wait) = retry_after {
            body["error"]["retry_after_ms"] = json!(millis_up(wait));
        }
        let mut response = json_response(status, &body);
        let allow = match self {
            Self::Method { allow } => Some((header::ALLOW, HeaderValue::from_static(allow))),
            _ => None,
        };
        let wait =
            retry_after.map(|wait| (header::RETRY_AFTER, HeaderValue::from(seconds_up(wait))));
        response.headers_mut().extend(allow.into_iter().chain(wait));
        response
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::Execute(error) => execute_status(error),
            Self::Reserve(error) => match error {
                ReserveError::Id(_) => StatusCode::BAD_REQUEST,
                ReserveError::Attempt | ReserveError::Ttl { .. } => {
                    StatusCode::UNPROCESSABLE_ENTITY
                }
                ReserveError::Refused(ReserveRefused::Started | ReserveRefused::Cancelled) => {
                    StatusCode::CONFLICT
                }
                ReserveError::Full { .. }
                | ReserveError::Draining { .. }
                | ReserveError::Refused(ReserveRefused::Full) => StatusCode::SERVICE_UNAVAILABLE,
            },
            Self::Parse(ParseError::OutOfRange { .. }) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::Parse(_) | Self::Id(_) => StatusCode::BAD_REQUEST,
            Self::UnknownExecution(_) | Self::UnknownPath => StatusCode::NOT_FOUND,
            Self::Method { .. } => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Stalled => StatusCode::REQUEST_TIMEOUT,
            Self::CrossOrigin => StatusCode::FORBIDDEN,
        }
    }

    const fn reason(&self) -> &'static str {
        match self {
            Self::Execute(error) => error.reason(),
            Self::Reserve(error) => error.reason(),
            Self::Parse(ParseError::NotJson(_)) => "not_json",
            Self::Parse(ParseError::WrongType(_)) => "wrong_type",
            Self::Parse(ParseError::OutOfRange { .. }) => "out_of_range",
            Self::Parse(ParseError::Query { .. }) => "bad_query",
            Self::Id(_) => "bad_id",
            Self::UnknownExecution(_) => "unknown_execution",
            Self::UnknownPath => "unknown_path",
            Self::Method { .. } => "method",
            Self::TooLarge { .. } => "body_too_large",
            Self::Stalled => "body_stalled",
            Self::CrossOrigin => "cross_origin",
        }
    }

    const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Execute(error) => error.retry_after(),
            Self::Reserve(error) => error.retry_after(),
            _ => None,
        }
    }
}

fn execute_status(error: &ExecuteError) -> StatusCode {
    match error {
        ExecuteError::Id(_) => StatusCode::BAD_REQUEST,
        ExecuteError::Spec(SpecError::CodeTooLarge { .. } | SpecError::ExtrasTooLarge { .. }) => {
            StatusCode::PAYLOAD_TOO_LARGE
        }
        ExecuteError::Attempt
        | ExecuteError::Spec(_)
        | ExecuteError::UnknownRuntime { .. }
        | ExecuteError::Lease { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        ExecuteError::Refused(ExecuteRefused::Gone) => StatusCode::GONE,
        ExecuteError::Refused(ExecuteRefused::Conflict | ExecuteRefused::Cancelled) => {
            StatusCode::CONFLICT
        }
        ExecuteError::Full { .. }
        | ExecuteError::Draining { .. }
        | ExecuteError::Refused(ExecuteRefused::Full) => StatusCode::SERVICE_UNAVAILABLE,
    }
}

fn kind(status: StatusCode) -> &'static str {
    match status {
        StatusCode::SERVICE_UNAVAILABLE => "service_unavailable",
        StatusCode::NOT_FOUND => "not_found",
        StatusCode::CONFLICT => "conflict",
        StatusCode::GONE => "gone",
        _ => "bad_request",
    }
}

/// Rounded up, and never "at once".
fn seconds_up(wait: Duration) -> u64 {
    (wait.as_secs() + u64::from(wait.subsec_nanos() > 0)).max(1)
}

fn millis_up(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_rounded_up_so_that_nobody_comes_too_early() {
        let seconds = |ms| seconds_up(Duration::from_millis(ms));
        assert_eq!([seconds(0), seconds(1), seconds(1_000), seconds(1_001)], [1, 1, 1, 2]);
        assert_eq!(millis_up(Duration::from_micros(1_001)), 2);
    }
}
