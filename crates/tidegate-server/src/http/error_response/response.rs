use super::ResponseFormat;
use super::fields::Fields;
use super::kind::ErrorKind;
use crate::http::ResponseBody;
use crate::http::response::json_with;
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use hyper::ext::ReasonPhrase;
use serde_json::json;
use std::time::Duration;

pub(super) const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC_PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// A response to a request that failed: its kind, and the fields of its body.
#[derive(Debug)]
#[must_use]
pub struct ErrorResponse<'a> {
    pub(super) kind: ErrorKind,
    pub(super) fields: Fields<'a>,
}

// === impl ErrorResponse ===

impl<'a> ErrorResponse<'a> {
    /// A response for a failure of this kind, with its reason's name and a message for people.
    pub fn new(kind: ErrorKind, reason: &'a str, message: &'a str) -> Self {
        let (status, type_name, _) = kind.describe();
        let fields = Fields::new(message, type_name, status.as_u16(), reason);
        Self { kind, fields }
    }

    /// Names the field of the request that is wrong.
    pub fn field(mut self, field: Option<&'a str>) -> Self {
        self.fields.field = field;
        self
    }

    /// Says when a retry may succeed.
    pub fn retry_after(mut self, wait: Option<Duration>) -> Self {
        self.fields.retry_after_ms = wait.map(millis);
        self
    }

    /// The response in the format that the client reads: JSON, or gRPC's trailers.
    #[must_use]
    pub fn respond(&self, format: ResponseFormat) -> Response<ResponseBody> {
        if format.grpc { self.trailers_only() } else { self.json() }
    }

    /// The response as JSON.
    #[must_use]
    pub fn json(&self) -> Response<ResponseBody> {
        let body = self.fields.to_json();
        let mut response = Response::new(ResponseBody::from(Bytes::from(body)));
        let (status, ..) = self.kind.describe();
        *response.status_mut() = status;
        if status.canonical_reason().is_none() {
            response.extensions_mut().insert(ReasonPhrase::from_static(b"Overloaded"));
        }
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.add_headers(headers);
        response
    }

    /// The response in the shape that clients of FastAPI know, as the contract of executors has it.
    #[must_use]
    pub fn detail(&self) -> Response<ResponseBody> {
        let (status, type_name, _) = self.kind.describe();
        let type_name = match status {
            StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::NOT_FOUND
            | StatusCode::CONFLICT
            | StatusCode::GONE => type_name,
            _ => "bad_request",
        };
        let Fields { message, reason, retry_after_ms, .. } = self.fields;
        let mut body = json!({
            "detail": message,
            "error": { "type": type_name, "reason": reason, "message": message },
        });
        if let Some(wait_ms) = retry_after_ms {
            body["error"]["retry_after_ms"] = json!(wait_ms);
        }
        let mut response = json_with(status, &body);
        self.add_headers(response.headers_mut());
        response
    }

    /// The response as bytes of HTTP/1.1 that end the connection, for a socket that no HTTP server has.
    #[must_use]
    pub fn raw_http1(&self) -> Vec<u8> {
        let (status, ..) = self.kind.describe();
        let body = self.fields.to_json();
        let wait_ms = self.fields.retry_after_ms.unwrap_or(1000);
        let mut raw = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
             retry-after: {}\r\n{RETRY_AFTER_MS}: {wait_ms}\r\nconnection: close\r\n\r\n",
            body.len(),
            seconds(wait_ms),
        )
        .into_bytes();
        raw.extend_from_slice(&body);
        raw
    }

    fn add_headers(&self, headers: &mut HeaderMap) {
        match self.kind {
            ErrorKind::MethodNotAllowed(allowed) if !allowed.is_empty() => {
                headers.insert(header::ALLOW, HeaderValue::from_static(allowed));
            }
            ErrorKind::Unauthorized => {
                let scheme = HeaderValue::from_static("Tidegate-Token");
                headers.insert(header::WWW_AUTHENTICATE, scheme);
            }
            _ => {}
        }
        if let Some(wait_ms) = self.fields.retry_after_ms {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds(wait_ms)));
            headers.insert(RETRY_AFTER_MS, HeaderValue::from(wait_ms));
        }
    }

    /// gRPC's response without a message: one block of headers that ends the stream.
    fn trailers_only(&self) -> Response<ResponseBody> {
        let (_, _, code) = self.kind.describe();
        let mut response = Response::new(ResponseBody::EMPTY);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(GRPC_STATUS, HeaderValue::from(code as u16));
        headers.insert(GRPC_MESSAGE, percent_encoded(self.fields.message));
        if let Some(wait_ms) = self.fields.retry_after_ms {
            headers.insert(GRPC_PUSHBACK, HeaderValue::from(wait_ms));
        }
        self.add_headers(headers);
        response
    }
}

/// Milliseconds, rounded up and at least 1, so that no client returns too early.
pub(super) fn millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX).max(1)
}

/// Whole seconds, rounded up and at least 1.
fn seconds(wait_ms: u64) -> u64 {
    wait_ms.div_ceil(1000).max(1)
}

/// Encodes a message as gRPC over HTTP/2 asks: printable ASCII but `%` as it is, the rest as `%XX`.
fn percent_encoded(message: &str) -> HeaderValue {
    let mut encoded = String::with_capacity(message.len());
    for byte in message.bytes() {
        match byte {
            b' '..=b'~' if byte != b'%' => encoded.push(byte as char),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    HeaderValue::from_str(&encoded).unwrap_or(HeaderValue::from_static("unavailable"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;

    #[test]
    fn waits_are_rounded_up_so_that_no_client_returns_too_early() {
        let seconds = |ms| seconds(millis(Duration::from_millis(ms)));
        assert_eq!([seconds(0), seconds(1), seconds(1_000), seconds(1_001)], [1, 1, 1, 2]);
        assert_eq!(millis(Duration::from_micros(1_001)), 2);
    }

    #[tokio::test]
    async fn the_detail_of_a_missing_token_has_the_type_of_its_status() {
        for (kind, type_name) in [
            (ErrorKind::Unauthorized, "unauthorized"),
            (ErrorKind::Forbidden, "forbidden"),
            (ErrorKind::Unprocessable, "bad_request"),
        ] {
            let response = ErrorResponse::new(kind, "token_missing", "a token is needed").detail();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!(body["error"]["type"], type_name);
        }
    }

    #[test]
    fn a_raw_response_is_as_long_as_it_says() {
        let error = ErrorResponse::new(ErrorKind::Exhausted, "connection_limit", "full");
        let raw = error.retry_after(Some(Duration::from_secs(1))).raw_http1();
        let text = String::from_utf8(raw).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{head}");
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{head}");
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!((&body["reason"], &body["code"]), (&json!("connection_limit"), &json!(503)));
        let nested = json!({
            "message": "full", "type": "service_unavailable", "param": null,
            "code": "connection_limit",
        });
        assert_eq!(body["error"], nested, "what the SDKs read");
    }
}
