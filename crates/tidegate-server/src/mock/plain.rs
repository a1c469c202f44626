//! What is no inference: every path that the API does not have is answered too, so that a gateway can be tried
//! with nothing but curl.

use super::answer::{json_answer, text_answer};
use super::body::MockBody;
use http::header::{self, HeaderValue};
use http::{Method, Response, StatusCode};
use serde_json::json;
use std::time::Duration;
use tokio::time::sleep;

/// What plain work takes when it is not told, and the longest that it can be told.
const WORK: Duration = Duration::from_millis(20);
const WORK_MAX: Duration = Duration::from_secs(60);

/// Ten server-sent events.
pub(super) fn events() -> Response<MockBody> {
    let mut response = Response::new(MockBody::ticker());
    let content_type = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    response
}

/// A little JSON, after a little while.
pub(super) async fn work(
    name: &str,
    method: &Method,
    path: &str,
    query: Option<&str>,
) -> Response<MockBody> {
    sleep(work_time(query)).await;
    let text = json!({
        "mock": format!("{name}: answered by Tidegate's own mock, not by a server of yours"),
        "method": method.as_str(),
        "path": path,
    });
    json_answer(StatusCode::OK, &text)
}

/// `?ms=250` makes the work take 250 milliseconds.
fn work_time(query: Option<&str>) -> Duration {
    let asked = query.and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("ms=")));
    let millis = asked.and_then(|millis| millis.parse().ok()).map(Duration::from_millis);
    millis.unwrap_or(WORK).min(WORK_MAX)
}

/// An answer without a text, for those who only look at the status.
pub(super) fn healthy() -> Response<MockBody> {
    text_answer(StatusCode::OK, "text/plain", String::new())
}
