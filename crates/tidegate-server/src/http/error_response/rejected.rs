use super::ResponseFormat;
use super::kind::ErrorKind;
use super::response::{ErrorResponse, millis};
use crate::config::OverloadStatus;
use crate::http::{Rejection, RejectionCause, ResponseBody};
use http::Response;

/// The parts of a refusal's response that the configuration decides.
#[derive(Clone, Copy, Debug)]
pub struct RejectionPolicy {
    /// The status when every upstream is busy.
    pub overload_status: OverloadStatus,
    /// True if other hosts reach the port: the message then names no upstream.
    pub exposed: bool,
}

/// The response to a request that a limit refused: its reason, its numbers, and when to retry.
#[must_use]
pub fn rejected(
    rejection: &Rejection,
    policy: RejectionPolicy,
    format: ResponseFormat,
) -> Response<ResponseBody> {
    let message = message(rejection, policy.exposed);
    describe(rejection, policy, &message).respond(format)
}

/// The same as bytes of HTTP/1.1, for a connection that no HTTP server has.
#[must_use]
pub fn rejected_raw(rejection: &Rejection, policy: RejectionPolicy) -> Vec<u8> {
    let message = message(rejection, policy.exposed);
    describe(rejection, policy, &message).raw_http1()
}

fn describe<'a>(
    rejection: &Rejection,
    policy: RejectionPolicy,
    message: &'a str,
) -> ErrorResponse<'a> {
    let reason = rejection.reason().name();
    let retry_after = Some(rejection.retry_after);
    let new = |kind, reason| ErrorResponse::new(kind, reason, message).retry_after(retry_after);
    match rejection.cause {
        RejectionCause::GlobalLimit { priority, limit }
        | RejectionCause::PriorityLimit { priority, limit }
        | RejectionCause::ClientShare { priority, limit } => {
            let mut response = new(ErrorKind::Exhausted, reason);
            (response.fields.priority, response.fields.limit) = (Some(priority), Some(limit));
            response
        }
        RejectionCause::AllBusy { busy, total, threshold, queue } => {
            let mut response = new(ErrorKind::Overloaded(policy.overload_status), reason);
            response.fields.busy_upstreams = Some(busy);
            response.fields.total_upstreams = Some(total);
            response.fields.threshold = threshold;
            response.fields.queue_position = queue.map(|queue| queue.position);
            response.fields.estimated_wait_ms = queue.and_then(|queue| queue.wait).map(millis);
            response
        }
        RejectionCause::NoUpstreams { total, starting } => {
            let reason = if starting > 0 { "upstreams_starting" } else { reason };
            let mut response = new(ErrorKind::NoUpstreams, reason);
            response.fields.busy_upstreams = Some(0);
            response.fields.total_upstreams = Some(total);
            response
        }
        RejectionCause::Displaced
        | RejectionCause::QueueTimeout(_)
        | RejectionCause::UpstreamShare
        | RejectionCause::ConnectionLimit => new(ErrorKind::Exhausted, reason),
    }
}

fn message(rejection: &Rejection, exposed: bool) -> String {
    match (&rejection.cause, &rejection.upstream) {
        (cause @ RejectionCause::NoUpstreams { .. }, _) => {
            format!("No upstreams available: {cause}")
        }
        (_, Some(_)) if exposed => "Service temporarily unavailable, please retry later".to_owned(),
        (cause, Some(upstream)) => format!(
            "Service temporarily unavailable: upstream {upstream} can't take the request now: {cause}, \
             please retry later"
        ),
        (cause, None) => format!("Service temporarily unavailable: {cause}, please retry later"),
    }
}
