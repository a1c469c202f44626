//! Responses of paths outside the API, so that a gateway can be tried with curl alone.

use super::body::MockBody;
use super::response::{json_response, text_response};
use http::header::{self, HeaderValue};
use http::{Method, Response, StatusCode};
use serde_json::json;
use std::time::Duration;
use tokio::time::sleep;

/// Default and maximum duration.
const WORK: Duration = Duration::from_millis(20);
const WORK_MAX: Duration = Duration::from_secs(60);

/// Ten server-sent events.
pub(super) fn events() -> Response<MockBody> {
    let mut response = Response::new(MockBody::ticker());
    let content_type = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

/// Small JSON response after a delay.
pub(super) async fn work(
    name: &str,
    method: &Method,
    path: &str,
    query: Option<&str>,
) -> Response<MockBody> {
    sleep(work_time(query)).await;
    let text = json!({
        "mock": format!("{name}: response of Tidegate's mock, not of your server"),
        "method": method.as_str(),
        "path": path,
    });
    json_response(StatusCode::OK, &text)
}

/// Delay of the query: `?ms=250` is 250 ms.
fn work_time(query: Option<&str>) -> Duration {
    let given = query.and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("ms=")));
    let millis = given.and_then(|millis| millis.parse().ok()).map(Duration::from_millis);
    millis.unwrap_or(WORK).min(WORK_MAX)
}

/// Empty response with status 200.
pub(super) fn healthy() -> Response<MockBody> {
    text_response(StatusCode::OK, "text/plain", String::new())
}
