use super::Asker;
use super::problem::{GrpcCode, Problem, millis};
use crate::config::OverloadStatus;
use crate::gateway::Shared;
use crate::proxy::{GatewayBody, NoPlace, ProxyError, Rejection, Unauthorized};
use crate::upstream::ConnectError;
use http::header::{self, HeaderValue};
use http::{Response, StatusCode};
use hyper::ext::ReasonPhrase;
use tidegate::routing::{Overload, RouteError};
use tidegate::{Reason, Refusal};

/// A limit was reached: 503 with the reason and when to come back, or gRPC's own RESOURCE_EXHAUSTED.
#[must_use]
pub fn refused(shared: &Shared, no_place: NoPlace, asker: Asker) -> Response<GatewayBody> {
    let limits = shared.tracker.limits();
    let advice = |refusal| shared.board.advice_for_one(refusal);
    let (message, refusal, limit, retry_after) = match no_place {
        NoPlace::Share { refusal, limit, retry_after } => (
            "Service temporarily unavailable: this client's requests hold as much as they may, please retry later",
            refusal,
            limit,
            retry_after,
        ),
        NoPlace::Limit(refusal @ Refusal { reason: Reason::GlobalLimit, .. }) => (
            "Service temporarily unavailable: the gateway is at its global limit, please retry later",
            refusal,
            limits.global_limit,
            advice(refusal),
        ),
        NoPlace::Limit(refusal @ Refusal { reason: Reason::PriorityLimit, .. }) => (
            "Service temporarily unavailable: this priority is at its limit, please retry later",
            refusal,
            limits.of(refusal.priority),
            advice(refusal),
        ),
    };
    let reason = no_place.rejection().name();
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
