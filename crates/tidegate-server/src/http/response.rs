use super::ResponseBody;
use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use serde::Serialize;

/// 200 with JSON.
pub(crate) fn json(body: &impl Serialize) -> Response<ResponseBody> {
    json_with(StatusCode::OK, body)
}

/// 201 with JSON: the request created what the body shows.
pub(crate) fn created(body: &impl Serialize) -> Response<ResponseBody> {
    json_with(StatusCode::CREATED, body)
}

/// 202 with JSON: the request was accepted and is not finished.
pub(crate) fn accepted(body: &impl Serialize) -> Response<ResponseBody> {
    json_with(StatusCode::ACCEPTED, body)
}

/// The answer of a health check with JSON: 200 when healthy, 503 otherwise.
pub(crate) fn health(healthy: bool, body: &impl Serialize) -> Response<ResponseBody> {
    let status = if healthy { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    json_with(status, body)
}

/// 200 with a page of metrics in Prometheus' text format.
pub(crate) fn metrics(page: String) -> Response<ResponseBody> {
    typed("text/plain; version=0.0.4; charset=utf-8", Bytes::from(page).into())
}

/// 200 with a body of this content type, which caches must not store.
pub(crate) fn uncached(content_type: &'static str, body: ResponseBody) -> Response<ResponseBody> {
    let mut response = typed(content_type, body);
    insert(&mut response, header::CACHE_CONTROL, "no-store");
    response
}

/// Returns true if a request succeeded with a body.
pub(crate) fn is_ok(status: StatusCode) -> bool {
    status == StatusCode::OK
}

/// Returns true if a server agrees to switch protocols.
pub(crate) fn switches_protocols(status: StatusCode) -> bool {
    status == StatusCode::SWITCHING_PROTOCOLS
}

/// Returns true if a response has no body by its status, whatever its length says.
pub(crate) fn has_no_content(status: StatusCode) -> bool {
    status == StatusCode::NO_CONTENT
}

/// Returns true if a server refuses or fails, however quickly: an upstream that does either at once would look
/// like the fastest of all and attract the others' load. A request that it does not implement is the request's
/// fault.
pub(crate) fn is_refusal(status: StatusCode) -> bool {
    let failed = status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED;
    failed || status == StatusCode::TOO_MANY_REQUESTS
}

pub(super) fn json_with(status: StatusCode, body: &impl Serialize) -> Response<ResponseBody> {
    let mut bytes = serde_json::to_vec(body).unwrap_or_default();
    bytes.push(b'\n');
    let mut response = uncached("application/json", Bytes::from(bytes).into());
    *response.status_mut() = status;
    response
}

fn typed(content_type: &'static str, body: ResponseBody) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    insert(&mut response, header::CONTENT_TYPE, content_type);
    response
}

fn insert(response: &mut Response<ResponseBody>, name: HeaderName, value: &'static str) {
    response.headers_mut().insert(name, HeaderValue::from_static(value));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failing_fast_is_not_being_fast() {
        let refused = |status: u16| StatusCode::from_u16(status).map(is_refusal);
        for status in [429, 500, 502, 503, 504, 529] {
            assert_eq!(refused(status).ok(), Some(true), "{status}");
        }
        for status in [200, 204, 304, 400, 404, 501] {
            assert_eq!(refused(status).ok(), Some(false), "{status}");
        }
    }
}
