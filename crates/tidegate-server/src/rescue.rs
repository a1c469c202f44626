//! The one place where a failure becomes an HTTP status. No error elsewhere knows any.

use crate::config::OverloadStatus;
use crate::control::{Handler, ThresholdError};
use crate::gateway::Shared;
use crate::ingest::UsageError;
use crate::proxy::{GatewayBody, ProxyError, Rejection, Unauthorized, is_grpc};
use crate::upstream::ConnectError;
use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode, Version};
use http_body::Body;
use hyper::ext::ReasonPhrase;
use serde::Serialize;
use std::time::Duration;
use tidegate::routing::{Overload, RouteError, Threshold};
use tidegate::{MessagePriority, Reason, Refusal};

const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("tidegate-retry-after-ms");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const GRPC_PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// How the one who asked wants to be answered. Copied out of the head, because the head is gone by the time
/// that something fails.
#[derive(Clone, Copy, Debug)]
pub struct Asker {
    /// It speaks gRPC, and understands nothing else.
    pub grpc: bool,
    /// It wants the head of an answer alone.
    head: bool,
    /// It speaks HTTP/1.x, where what is left of a request stands before the next one.
    http1: bool,
}

/// Whether something of a request is left that was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// It was read to its end.
    None,
    /// There may be more.
    Some,
}

/// What every answer of ours that is not a success looks like.
#[derive(Debug, Serialize)]
struct Problem<'a> {
    message: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    code: u16,
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<MessagePriority>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    busy_workers: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_workers: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold: Option<Threshold>,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
}

/// The canonical code of gRPC that says the same as an HTTP status.
#[derive(Clone, Copy, Debug)]
enum GrpcCode {
    InvalidArgument = 3,
    DeadlineExceeded = 4,
    ResourceExhausted = 8,
    Unimplemented = 12,
    Unavailable = 14,
    Unauthenticated = 16,
}

// === impl Asker ===

impl Asker {
    /// Reads what matters from a request that is about to be decided.
    #[must_use]
    pub fn of<B>(request: &Request<B>) -> Self {
        Self {
            grpc: is_grpc(request.headers()),
            head: request.method() == Method::HEAD,
            http1: request.version() <= Version::HTTP_11,
        }
    }

    /// Fits an answer of ours to the one who asked: a head has no body, also over HTTP/2, and a connection on
    /// which a request was left unread says that it ends.
    #[must_use]
    pub fn fit(self, mut response: Response<GatewayBody>, body: Unread) -> Response<GatewayBody> {
        if self.head {
            let length = response.body().size_hint().exact().unwrap_or(0);
            response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
            *response.body_mut() = GatewayBody::EMPTY;
        }
        if self.http1 && body == Unread::Some {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// A limit was reached: 503 with the reason and when to come back, or gRPC's own RESOURCE_EXHAUSTED.
#[must_use]
pub fn refused(shared: &Shared, refusal: Refusal, asker: Asker) -> Response<GatewayBody> {
    let retry_after = shared.board.advice_for_one(refusal);
    let limits = shared.tracker.limits();
    let (message, limit) = match refusal.reason {
        Reason::GlobalLimit => (
            "Service temporarily unavailable: the gateway is at its global limit, please retry later",
            limits.global_limit,
        ),
        Reason::PriorityLimit => (
            "Service temporarily unavailable: this priority is at its limit, please retry later",
            limits.of(refusal.priority),
        ),
    };
    let reason = Rejection::of_admission(refusal).name();
    let problem = Problem {
        priority: Some(refusal.priority),
        limit: Some(limit),
        retry_after_ms: Some(millis(retry_after)),
        ..Problem::new(StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", reason, message)
    };
    problem.into_response(GrpcCode::ResourceExhausted, asker)
}

/// No answer could be had from an upstream. On an exposed port the answer does not say which, nor what the
/// system said of it; the log does.
#[must_use]
pub fn failed(shared: &Shared, error: &ProxyError, asker: Asker) -> Response<GatewayBody> {
    match error {
        ProxyError::Overloaded(overload) => return overloaded(shared, overload, asker),
        ProxyError::NoWorkers(why) => return no_workers(shared, why, asker),
        ProxyError::Outbox { why, retry_after, .. } => {
            let reason = Rejection::of_line(*why).name();
            let message = format!("Service temporarily unavailable: {error}, please retry later");
            let message = hidden_if(shared.exposed, &message);
            let status = StatusCode::SERVICE_UNAVAILABLE;
            let problem = Problem {
                retry_after_ms: Some(millis(*retry_after)),
                ..Problem::new(status, "service_unavailable", reason, message)
            };
            return problem.into_response(GrpcCode::ResourceExhausted, asker);
        }
        _ => {}
    }
    let (status, kind, reason, grpc) = classify(error);
    tracing::debug!(%error, reason, "a request failed");
    let message = match shared.exposed && !error.is_clients() {
        true => "no answer could be had from an upstream".to_owned(),
        false => error.to_string(),
    };
    Problem::new(status, kind, reason, &message).into_response(grpc, asker)
}

/// All workers are busy: what the document of busy thresholds has, and how many, by what, and when to come back.
fn overloaded(shared: &Shared, overload: &Overload, asker: Asker) -> Response<GatewayBody> {
    let status = match shared.config.routing.overload_status {
        OverloadStatus::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        OverloadStatus::Overloaded => {
            StatusCode::from_u16(529).unwrap_or(StatusCode::SERVICE_UNAVAILABLE)
        }
        OverloadStatus::TooMany => StatusCode::TOO_MANY_REQUESTS,
    };
    let message = "Service temporarily unavailable: All workers are busy, please retry later";
    let problem = Problem {
        busy_workers: Some(overload.busy),
        total_workers: Some(overload.total),
        threshold: overload.threshold,
        retry_after_ms: Some(millis(overload.retry_after)),
        ..Problem::new(status, "service_unavailable", Rejection::AllBusy.name(), message)
    };
    let mut response = problem.into_response(GrpcCode::ResourceExhausted, asker);
    if status.canonical_reason().is_none() {
        response.extensions_mut().insert(ReasonPhrase::from_static(b"Overloaded"));
    }
    response
}

/// Nobody is there: that is not overload, and coming back soon is only worth it because workers come and go.
fn no_workers(shared: &Shared, why: &RouteError, asker: Asker) -> Response<GatewayBody> {
    let RouteError::NoWorkers { total, starting } = why else {
        let message = why.to_string();
        let status = StatusCode::BAD_GATEWAY;
        let problem = Problem::new(status, "bad_gateway", "no_upstream", &message);
        return problem.into_response(GrpcCode::Unavailable, asker);
    };
    let reason = if *starting > 0 { "workers_starting" } else { Rejection::NoWorkers.name() };
    let message = format!("No workers available: {why}");
    let problem = Problem {
        busy_workers: Some(0),
        total_workers: Some(*total),
        retry_after_ms: Some(millis(shared.config.proxy.health_interval)),
        ..Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no_workers_available", reason, &message)
    };
    problem.into_response(GrpcCode::Unavailable, asker)
}

fn hidden_if(exposed: bool, message: &str) -> &str {
    match exposed {
        true => "Service temporarily unavailable, please retry later",
        false => message,
    }
}

/// The client did not show a token that is known.
#[must_use]
pub fn unauthorized(error: Unauthorized, asker: Asker) -> Response<GatewayBody> {
    let reason = match error {
        Unauthorized::Missing => "token_missing",
        Unauthorized::Unknown => "token_unknown",
    };
    let message = error.to_string();
    let problem = Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", reason, &message);
    let mut response = problem.into_response(GrpcCode::Unauthenticated, asker);
    response
        .headers_mut()
        .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Tidegate-Token"));
    response
}

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

/// The admin port was asked for something else than the control plane.
#[must_use]
pub fn not_found() -> Response<GatewayBody> {
    let paths = Handler::ALL.map(Handler::path).join(", ");
    let message = format!("this is the admin port; it answers {paths}");
    Problem::new(StatusCode::NOT_FOUND, "not_found", "unknown_path", &message).json()
}

/// A name for each failure, as metrics and answers use it.
#[must_use]
pub fn reason_of(error: &ProxyError) -> &'static str {
    classify(error).2
}

/// The names that [`reason_of`] can give.
pub const FAILURE_REASONS: [&str; 14] = [
    "unknown_worker",
    "loop",
    "connect_method",
    "bad_host",
    "bad_target",
    "no_upstream",
    "connect_failed",
    "connect_timeout",
    "upstream_reset",
    "response_timeout",
    "bad_answer",
    "transfer_coding",
    "upload_stalled",
    "upload_broken",
];

fn classify(error: &ProxyError) -> (StatusCode, &'static str, &'static str, GrpcCode) {
    use GrpcCode::{DeadlineExceeded, InvalidArgument, Unavailable, Unimplemented};
    match error {
        ProxyError::Loop => (StatusCode::LOOP_DETECTED, "loop_detected", "loop", Unavailable),
        ProxyError::ConnectMethod => {
            (StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "connect_method", Unimplemented)
        }
        ProxyError::BadHost => {
            (StatusCode::BAD_REQUEST, "bad_request", "bad_host", InvalidArgument)
        }
        ProxyError::BadTarget => {
            (StatusCode::BAD_REQUEST, "bad_request", "bad_target", InvalidArgument)
        }
        // These are counted and answered as refusals.
        ProxyError::Overloaded(_) | ProxyError::NoWorkers(_) | ProxyError::Outbox { .. } => {
            (StatusCode::SERVICE_UNAVAILABLE, "service_unavailable", "rejected", Unavailable)
        }
        ProxyError::UnknownWorker { .. } => {
            (StatusCode::BAD_REQUEST, "bad_request", "unknown_worker", InvalidArgument)
        }
        ProxyError::NoUpstream => {
            (StatusCode::BAD_GATEWAY, "bad_gateway", "no_upstream", Unavailable)
        }
        ProxyError::Connect { source: ConnectError::Timeout(_), .. } => {
            (StatusCode::GATEWAY_TIMEOUT, "gateway_timeout", "connect_timeout", Unavailable)
        }
        ProxyError::Connect { .. } => {
            (StatusCode::BAD_GATEWAY, "bad_gateway", "connect_failed", Unavailable)
        }
        ProxyError::Reset { .. } => {
            (StatusCode::BAD_GATEWAY, "bad_gateway", "upstream_reset", Unavailable)
        }
        ProxyError::ResponseTimeout { .. } => {
            (StatusCode::GATEWAY_TIMEOUT, "gateway_timeout", "response_timeout", DeadlineExceeded)
        }
        ProxyError::BadAnswer { .. } => {
            (StatusCode::BAD_GATEWAY, "bad_gateway", "bad_answer", Unavailable)
        }
        ProxyError::TransferCoding => {
            (StatusCode::NOT_IMPLEMENTED, "not_implemented", "transfer_coding", Unimplemented)
        }
        ProxyError::UploadBroken => {
            (StatusCode::BAD_REQUEST, "bad_request", "upload_broken", InvalidArgument)
        }
        ProxyError::UploadStalled { .. } => {
            (StatusCode::REQUEST_TIMEOUT, "request_timeout", "upload_stalled", DeadlineExceeded)
        }
    }
}

// === impl Problem ===

impl<'a> Problem<'a> {
    fn new(status: StatusCode, kind: &'a str, reason: &'a str, message: &'a str) -> Self {
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

    fn into_response(self, grpc: GrpcCode, asker: Asker) -> Response<GatewayBody> {
        let mut response = if asker.grpc { self.trailers_only(grpc) } else { self.json() };
        if let Some(wait_ms) = self.retry_after_ms {
            let headers = response.headers_mut();
            // Whole seconds, rounded up: a client must never come too early by our own word.
            headers.insert(header::RETRY_AFTER, HeaderValue::from(wait_ms.div_ceil(1000).max(1)));
            headers.insert(RETRY_AFTER_MS, HeaderValue::from(wait_ms));
        }
        response
    }

    fn json(&self) -> Response<GatewayBody> {
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

fn millis(duration: Duration) -> u64 {
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
