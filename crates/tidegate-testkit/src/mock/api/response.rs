use super::body::MockBody;
use super::problem::Problem;
use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{Response, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;

/// Error response of a problem.
pub(super) fn problem_response(problem: Problem) -> Response<MockBody> {
    let headers = match &problem {
        Problem::Method { allow } => Some((header::ALLOW, HeaderValue::from_static(allow))),
        Problem::Overloaded { retry_after } => {
            Some((header::RETRY_AFTER, HeaderValue::from(whole_seconds(*retry_after))))
        }
        Problem::Injected => Some((header::RETRY_AFTER, HeaderValue::from(1))),
        _ => None,
    };
    let parts = problem.parts();
    let error = json!({"error": {
        "message": parts.message,
        "type": parts.kind,
        "param": parts.param,
        "code": parts.code,
    }});
    let mut response = json_response(parts.status, &error);
    response.headers_mut().extend(headers);
    response
}

/// Rounds up to at least 1 s.
fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0 || time.is_zero())
}

/// Response with a JSON body.
pub(super) fn json_response(status: StatusCode, value: &Value) -> Response<MockBody> {
    text_response(status, "application/json", format!("{value}\n"))
}

/// Response of finished work; constant, because drills request thousands per second.
pub(super) fn done_response() -> Response<MockBody> {
    let mut response = Response::new(MockBody::text(Bytes::from_static(b"{\"done\":true}\n")));
    let content_type = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

/// Response with a text body.
pub(super) fn text_response(
    status: StatusCode,
    content_type: &'static str,
    text: String,
) -> Response<MockBody> {
    let mut response = Response::new(MockBody::text(Bytes::from(text)));
    *response.status_mut() = status;
    let content_type = HeaderValue::from_static(content_type);
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}
