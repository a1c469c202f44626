//! Errors of requests to an executor, as responses.

use super::parse::ParseError;
use crate::http::ResponseBody;
use crate::http::error_response::{ErrorKind, ErrorResponse};
use crate::tasks::executor::error::{ExecuteError, ReserveError};
use http::Response;
use std::time::Duration;
use tidegate::capacity::{ExecuteRefused, ReserveRefused};
use tidegate::progress::ProgressError;
use tidegate::task::{ExecutionKey, IdError, SpecError};

/// Error of a request to an executor.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(super) enum RequestError {
    #[error(transparent)]
    Execute(#[from] ExecuteError),
    #[error(transparent)]
    Reserve(#[from] ReserveError),
    #[error(transparent)]
    Parse(#[from] ParseError),
    #[error("execution id: {0}")]
    Id(#[from] IdError),
    #[error("there is no execution {0}; ended executions are forgotten after a while")]
    UnknownExecution(ExecutionKey),
    #[error("execution {0} has ended: its progress changes no more")]
    ExecutionEnded(ExecutionKey),
    #[error("the progress was not used: {0}")]
    Progress(#[from] ProgressError),
    #[error("unknown path; there are /capacity, /execute, /reserve and /executions/{{id}}")]
    UnknownPath,
    #[error("the token of this worker is needed: send it as Authorization: Bearer TOKEN")]
    TokenMissing,
    #[error("the token in the Authorization header is not the token of this worker")]
    TokenUnknown,
    #[error("this path accepts {allow}")]
    Method { allow: &'static str },
    #[error("the body has more than {bytes_max} bytes")]
    TooLarge { bytes_max: usize },
    #[error("the body is incomplete, or did not arrive in time")]
    Stalled,
    #[error("the request comes from a page of another origin")]
    CrossOrigin,
}

// === impl RequestError ===

impl RequestError {
    /// The response, in the shape that clients of FastAPI expect.
    pub(super) fn respond(&self) -> Response<ResponseBody> {
        ErrorResponse::new(self.kind(), self.reason(), &self.to_string())
            .retry_after(self.retry_after())
            .detail()
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::Execute(error) => execute_kind(error),
            Self::Reserve(error) => match error {
                ReserveError::Id(_) => ErrorKind::BadRequest,
                ReserveError::Attempt | ReserveError::Ttl { .. } => ErrorKind::Unprocessable,
                ReserveError::Refused(ReserveRefused::Started | ReserveRefused::Cancelled) => {
                    ErrorKind::Conflict
                }
                ReserveError::Full { .. }
                | ReserveError::Draining { .. }
                | ReserveError::Refused(ReserveRefused::Full) => ErrorKind::Unavailable,
            },
            Self::Parse(ParseError::OutOfRange { .. } | ParseError::WrongType(_)) => {
                ErrorKind::Unprocessable
            }
            Self::Progress(ProgressError::NotJson(_)) => ErrorKind::BadRequest,
            Self::Progress(ProgressError::TooLong { .. }) => ErrorKind::TooLarge,
            Self::Progress(_) => ErrorKind::Unprocessable,
            Self::ExecutionEnded(_) => ErrorKind::Conflict,
            Self::Parse(_) | Self::Id(_) => ErrorKind::BadRequest,
            Self::UnknownExecution(_) | Self::UnknownPath => ErrorKind::NotFound,
            Self::TokenMissing | Self::TokenUnknown => ErrorKind::Unauthorized,
            Self::Method { allow } => ErrorKind::MethodNotAllowed(allow),
            Self::TooLarge { .. } => ErrorKind::TooLarge,
            Self::Stalled => ErrorKind::RequestTimeout,
            Self::CrossOrigin => ErrorKind::Forbidden,
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
            Self::ExecutionEnded(_) => "ended",
            Self::Progress(error) => error.reason(),
            Self::UnknownPath => "unknown_path",
            Self::TokenMissing => "token_missing",
            Self::TokenUnknown => "token_unknown",
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

fn execute_kind(error: &ExecuteError) -> ErrorKind {
    match error {
        ExecuteError::Id(_) => ErrorKind::BadRequest,
        ExecuteError::Spec(SpecError::CodeTooLarge { .. } | SpecError::ExtrasTooLarge { .. }) => {
            ErrorKind::TooLarge
        }
        ExecuteError::Attempt
        | ExecuteError::Spec(_)
        | ExecuteError::UnknownRuntime { .. }
        | ExecuteError::Lease { .. } => ErrorKind::Unprocessable,
        ExecuteError::Refused(ExecuteRefused::Gone) => ErrorKind::Gone,
        ExecuteError::Refused(ExecuteRefused::Conflict | ExecuteRefused::Cancelled) => {
            ErrorKind::Conflict
        }
        ExecuteError::Full { .. }
        | ExecuteError::Draining { .. }
        | ExecuteError::Refused(ExecuteRefused::Full) => ErrorKind::Unavailable,
    }
}
