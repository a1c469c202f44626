use super::Asker;
use super::problem::{GrpcCode, Problem, millis};
use crate::control::TaskApiError;
use crate::manager::DeskError;
use crate::proxy::GatewayBody;
use http::header::{self, HeaderValue};
use http::{Response, StatusCode};
use std::time::Duration;
use tidegate::task::SpecError;

/// When to come back to what is about to be right again, where nobody can know better.
const SOON: Duration = Duration::from_secs(1);

/// A request about tasks was not followed.
#[must_use]
pub fn task(error: &TaskApiError, asker: Asker) -> Response<GatewayBody> {
    let (status, kind, reason, grpc) = classify(error);
    let retry_after = match error {
        TaskApiError::Desk(DeskError::LineFull { retry_after, .. }) => Some(*retry_after),
        _ if status == StatusCode::SERVICE_UNAVAILABLE => Some(SOON),
        _ => None,
    };
    let message = error.to_string();
    let problem = Problem {
        field: error.field(),
        retry_after_ms: retry_after.map(millis),
        ..Problem::new(status, kind, reason, &message)
    };
    let mut response = problem.into_response(grpc, asker);
    if let TaskApiError::Method { allowed } = error {
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
    }
    response
}

fn classify(error: &TaskApiError) -> (StatusCode, &'static str, &'static str, GrpcCode) {
    use GrpcCode::{InvalidArgument, Unimplemented};
    let unprocessable = |reason| {
        (StatusCode::UNPROCESSABLE_ENTITY, "unprocessable_entity", reason, InvalidArgument)
    };
    let bad = |reason| (StatusCode::BAD_REQUEST, "bad_request", reason, InvalidArgument);
    match error {
        TaskApiError::Desk(error) => of_desk(error),
        TaskApiError::NotJsonType { .. } => (
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
            "not_json_type",
            InvalidArgument,
        ),
        TaskApiError::NotJson(_) => bad("not_json"),
        TaskApiError::TooLong { .. } => {
            (StatusCode::PAYLOAD_TOO_LARGE, "too_large", "too_long", InvalidArgument)
        }
        TaskApiError::Broken => bad("upload_broken"),
        TaskApiError::UnknownField { .. } => unprocessable("unknown_field"),
        TaskApiError::Value { .. } | TaskApiError::Id(_) => unprocessable("wrong_value"),
        TaskApiError::Parameter { .. } => bad("wrong_parameter"),
        TaskApiError::CrossOrigin => {
            (StatusCode::FORBIDDEN, "forbidden", "cross_origin", InvalidArgument)
        }
        TaskApiError::WatchersFull => unavailable("watchers_full"),
        TaskApiError::Nowhere => {
            (StatusCode::NOT_FOUND, "not_found", "unknown_path", Unimplemented)
        }
        TaskApiError::Method { .. } => {
            (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "unknown_method", Unimplemented)
        }
    }
}

fn of_desk(error: &DeskError) -> (StatusCode, &'static str, &'static str, GrpcCode) {
    use GrpcCode::InvalidArgument;
    let conflict = |reason| (StatusCode::CONFLICT, "conflict", reason, InvalidArgument);
    let unprocessable = |reason| {
        (StatusCode::UNPROCESSABLE_ENTITY, "unprocessable_entity", reason, InvalidArgument)
    };
    match error {
        DeskError::Spec(SpecError::CodeTooLarge { .. } | SpecError::ExtrasTooLarge { .. }) => {
            (StatusCode::PAYLOAD_TOO_LARGE, "too_large", "too_long", InvalidArgument)
        }
        DeskError::Spec(_) => unprocessable("wrong_value"),
        DeskError::UnknownRuntime { .. } => unprocessable("unknown_runtime"),
        DeskError::Refused(_) => unprocessable("wrong_value"),
        DeskError::OtherUnderId(_) => conflict("other_under_id"),
        DeskError::OtherUnderKey(_) => conflict("other_under_key"),
        DeskError::Over { .. } => conflict("over"),
        DeskError::NotFound(_) => {
            (StatusCode::NOT_FOUND, "not_found", "unknown_task", InvalidArgument)
        }
        DeskError::LineFull { .. } => unavailable("line_full"),
        DeskError::Store(_) => unavailable("store_unavailable"),
        DeskError::Draining => unavailable("draining"),
    }
}

fn unavailable(reason: &'static str) -> (StatusCode, &'static str, &'static str, GrpcCode) {
    (StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", reason, GrpcCode::Unavailable)
}
