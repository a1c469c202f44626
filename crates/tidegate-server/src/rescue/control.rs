use super::problem::Problem;
use crate::control::{Handler, ThresholdError};
use crate::ingest::UsageError;
use crate::proxy::GatewayBody;
use crate::record::RecordError;
use http::header::{self, HeaderValue};
use http::{Response, StatusCode};

/// An endpoint of the control plane was asked to change something.
#[must_use]
pub fn read_only() -> Response<GatewayBody> {
    let message = "this endpoint is read only: use GET or HEAD";
    let mut response =
        Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "read_only", message)
            .json();
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
    response
}

/// A request about busy thresholds was not followed.
#[must_use]
pub fn threshold(error: &ThresholdError) -> Response<GatewayBody> {
    let (status, kind, reason) = match error {
        ThresholdError::NotJson(_) => (StatusCode::BAD_REQUEST, "bad_request", "not_json"),
        ThresholdError::TooLong => (StatusCode::PAYLOAD_TOO_LARGE, "too_large", "too_long"),
        ThresholdError::Broken => (StatusCode::BAD_REQUEST, "bad_request", "upload_broken"),
        ThresholdError::WrongType { .. } => {
            (StatusCode::UNPROCESSABLE_ENTITY, "unprocessable_entity", "wrong_type")
        }
        ThresholdError::OutOfRange { .. } => {
            (StatusCode::BAD_REQUEST, "bad_request", "out_of_range")
        }
        ThresholdError::UnknownModel(_) => (StatusCode::NOT_FOUND, "not_found", "unknown_model"),
        ThresholdError::Method => {
            (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "unknown_method")
        }
        ThresholdError::ReadOnlyHere => (StatusCode::FORBIDDEN, "forbidden", "read_only_here"),
        ThresholdError::CrossOrigin => (StatusCode::FORBIDDEN, "forbidden", "cross_origin"),
    };
    let message = error.to_string();
    let problem = Problem { field: error.field(), ..Problem::new(status, kind, reason, &message) };
    let mut response = problem.json();
    if status == StatusCode::METHOD_NOT_ALLOWED {
        let allowed = HeaderValue::from_static("GET, HEAD, POST, DELETE");
        response.headers_mut().insert(header::ALLOW, allowed);
    }
    response
}

/// Usage was asked for and can't be told.
#[must_use]
pub fn usage(error: &UsageError) -> Response<GatewayBody> {
    let (status, kind, reason) = match error {
        UsageError::Parameter { .. } => (StatusCode::BAD_REQUEST, "bad_request", "wrong_parameter"),
        UsageError::Off => (StatusCode::NOT_FOUND, "not_found", "ingest_off"),
        UsageError::Store(_) | UsageError::TooLong => {
            (StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", "store_unavailable")
        }
    };
    Problem::new(status, kind, reason, &error.to_string()).json()
}

/// Decisions were asked for and are not told.
#[must_use]
pub fn record(error: RecordError) -> Response<GatewayBody> {
    let (status, kind, reason) = match error {
        RecordError::Parameter => (StatusCode::BAD_REQUEST, "bad_request", "wrong_parameter"),
        RecordError::TooMany => {
            (StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", "too_many_recorders")
        }
    };
    Problem::new(status, kind, reason, &error.to_string()).json()
}

/// The admin port was asked for something else than the control plane.
#[must_use]
pub fn not_found() -> Response<GatewayBody> {
    let paths = Handler::ALL.map(Handler::path).join(", ");
    let message = format!("this is the admin port; it answers {paths}");
    Problem::new(StatusCode::NOT_FOUND, "not_found", "unknown_path", &message).json()
}
