use crate::http::ResponseBody;
use crate::http::error_response::{ErrorKind, ErrorResponse};
use http::Response;
use std::time::Duration;
use tidegate::store::StoreError;

/// The longest that a sum may take.
pub const QUERY_TIME_MAX: Duration = Duration::from_secs(9);

/// A request for usage that failed.
#[derive(Debug, thiserror::Error)]
pub enum UsageError {
    /// A parameter is wrong.
    #[error("{parameter}: {given:?} was given; expected is {expected}")]
    Parameter {
        /// The name.
        parameter: String,
        /// The given value.
        given: String,
        /// The expected values.
        expected: &'static str,
    },
    /// The store can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The sum took too long.
    #[error("the sum was not there within {QUERY_TIME_MAX:?}: ask for less")]
    TooLong,
    /// No records are taken in here.
    #[error(
        "this node takes in no usage records: start it with --ingest, or set enabled = true in [ingest] of its \
         configuration"
    )]
    Off,
}

// === impl UsageError ===

impl UsageError {
    /// The response to such a request.
    #[must_use]
    pub fn respond(&self) -> Response<ResponseBody> {
        let (kind, reason) = match self {
            Self::Parameter { .. } => (ErrorKind::BadRequest, "wrong_parameter"),
            Self::Off => (ErrorKind::NotFound, "ingest_off"),
            Self::Store(_) | Self::TooLong => (ErrorKind::Unavailable, "store_unavailable"),
        };
        ErrorResponse::new(kind, reason, &self.to_string()).json()
    }
}

/// The error about a parameter.
pub fn wrong(parameter: &str, given: &str, expected: &'static str) -> UsageError {
    UsageError::Parameter { parameter: parameter.to_owned(), given: given.to_owned(), expected }
}
