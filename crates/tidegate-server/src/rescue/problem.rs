use super::Asker;
use crate::proxy::GatewayBody;
use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use serde::Serialize;
use std::time::Duration;
use tidegate::MessagePriority;
use tidegate::routing::Threshold;

const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("tidegate-retry-after-ms");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC_PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// What every answer of ours that is not a success looks like.
#[derive(Debug, Serialize)]
pub(super) struct Problem<'a> {
    pub(super) message: &'a str,
    #[serde(rename = "type")]
    pub(super) kind: &'a str,
    pub(super) code: u16,
    pub(super) reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) priority: Option<MessagePriority>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) limit: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) busy_workers: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) total_workers: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) threshold: Option<Threshold>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) field: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) retry_after_ms: Option<u64>,
}

/// The canonical code of gRPC that says the same as an HTTP status.
#[derive(Clone, Copy, Debug)]
pub(super) enum GrpcCode {
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    ResourceExhausted = 8,
    Unimplemented = 12,
    Unavailable = 14,
    Unauthenticated = 16,
}

// === impl Problem ===

impl<'a> Problem<'a> {
    pub(super) fn new(
        status: StatusCode,
        kind: &'a str,
        reason: &'a str,
        message: &'a str,
    ) -> Self {
        let code = status.as_u16();
        Self {
            message,
            kind,
            code,
            reason,
            priority: None,
            limit: None,
            busy_workers: None,
            total_workers: None,
            threshold: None,
            field: None,
            retry_after_ms: None,
        }
    }

    pub(super) fn into_response(self, grpc: GrpcCode, asker: Asker) -> Response<GatewayBody> {
        let mut response = if asker.grpc { self.trailers_only(grpc) } else { self.json() };
        if let Some(wait_ms) = self.retry_after_ms {
            let headers = response.headers_mut();
            // Whole seconds, rounded up: a client must never come too early by our own word.
            headers.insert(header::RETRY_AFTER, HeaderValue::from(wait_ms.div_ceil(1000).max(1)));
            headers.insert(RETRY_AFTER_MS, HeaderValue::from(wait_ms));
        }
        response
    }

    pub(super) fn json(&self) -> Response<GatewayBody> {
        let body = serde_json::to_vec(self).unwrap_or_default();
        let mut response = Response::new(GatewayBody::from(Bytes::from(body)));
        *response.status_mut() =
            StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }

    /// gRPC's answer without a message: everything is in one block of headers that ends the stream.
    fn trailers_only(&self, code: GrpcCode) -> Response<GatewayBody> {
        let mut response = Response::new(GatewayBody::EMPTY);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        headers.insert(GRPC_STATUS, HeaderValue::from(code as u16));
        headers.insert(GRPC_MESSAGE, percent_encoded(self.message));
        if let Some(wait_ms) = self.retry_after_ms {
            headers.insert(GRPC_PUSHBACK, HeaderValue::from(wait_ms));
        }
        response
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).max(1)
}

/// As gRPC over HTTP/2 asks: printable ASCII but `%` stands as it is, the rest as `%XX`.
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
