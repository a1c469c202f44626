use super::{GatewayStats, Handler, busy_threshold, metrics};
use crate::gateway::{Phase, Shared};
use crate::ingest::usage as ingest_usage;
use crate::proxy::{GatewayBody, Unauthorized};
use crate::record;
use crate::rescue::{self, Asker, Unread};
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body::Body;
use serde_json::json;

/// Answers a request to the control plane. Counted as Critical, and so never refused.
///
/// With `guarded`, snapshots are for clients with a token alone.
pub async fn answer<B: Body<Data = Bytes>>(
    shared: &Shared,
    handler: Handler,
    request: Request<B>,
    guarded: bool,
) -> Response<GatewayBody> {
    let asker = Asker::of(&request);
    let permit = shared.tracker.try_acquire(handler.kind().class().priority());
    let unread = if request.body().is_end_stream() { Unread::None } else { Unread::Some };
    let changes = handler == Handler::BusyThreshold;
    let response = if !(changes || matches!(*request.method(), Method::GET | Method::HEAD)) {
        rescue::read_only()
    } else if let Err(unauthorized) = admit(shared, handler, request.headers(), guarded) {
        rescue::unauthorized(unauthorized, asker)
    } else {
        match handler {
            Handler::HealthLive => live(shared),
            Handler::HealthReady => ready(shared),
            Handler::Metrics => text(metrics::render(shared)),
            Handler::Usage => ingest_usage(shared.ingest.as_deref(), request.uri().query()).await,
            Handler::Decisions => {
                record::answer(shared, request.uri().query()).unwrap_or_else(rescue::record)
            }
            Handler::Stats => json_response(StatusCode::OK, &GatewayStats::of(shared)),
            Handler::BusyThreshold => {
                let (response, read) = thresholds(shared, request, guarded).await;
                if let Some(permit) = permit {
                    permit.success();
                }
                let unread = if read { Unread::None } else { unread };
                return asker.fit(response, unread);
            }
        }
    };
    if let Some(permit) = permit {
        permit.success();
    }
    asker.fit(response, unread)
}

/// With the answer: whether the request was read to its end.
async fn thresholds<B: Body<Data = Bytes>>(
    shared: &Shared,
    request: Request<B>,
    guarded: bool,
) -> (Response<GatewayBody>, bool) {
    // To tell them, nothing of a request is read but its head.
    let reads = !matches!(*request.method(), Method::GET | Method::HEAD);
    match busy_threshold::answer(shared, request, guarded).await {
        Ok(told) => (json_response(StatusCode::OK, &told), reads),
        Err(error) => (rescue::threshold(&error), reads && error.is_after_reading()),
    }
}

fn admit(
    shared: &Shared,
    handler: Handler,
    headers: &HeaderMap,
    guarded: bool,
) -> Result<(), Unauthorized> {
    if guarded && handler.is_telling() { shared.gatekeeper.require_known(headers) } else { Ok(()) }
}

fn live(shared: &Shared) -> Response<GatewayBody> {
    let stuck: Vec<usize> = shared.stuck_threads().collect();
    if stuck.is_empty() {
        json_response(StatusCode::OK, &json!({ "status": "live" }))
    } else {
        let body = json!({ "status": "stuck", "stuck_threads": stuck });
        json_response(StatusCode::SERVICE_UNAVAILABLE, &body)
    }
}

fn ready(shared: &Shared) -> Response<GatewayBody> {
    let up = shared.fleet.monitor().workers().iter().filter(|worker| worker.up).count();
    let total = shared.fleet.all().len();
    let ingest = shared.ingest.as_ref();
    // Told and not judged: requests can be served while usage records have to wait.
    let store_ok = ingest.map(|ingest| ingest.is_ready());
    let status = match shared.phase() {
        Phase::Draining => "draining",
        Phase::Serving if up == 0 => "no_upstream",
        Phase::Serving => "ready",
    };
    let code = if status == "ready" { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let state = shared.tracker.load_state();
    let body = json!({
        "status": status, "upstreams_up": up, "upstreams": total, "load_state": state,
        "ingest_store_ok": store_ok,
    });
    json_response(code, &body)
}

pub(crate) fn json_response(
    status: StatusCode,
    body: &impl serde::Serialize,
) -> Response<GatewayBody> {
    let mut bytes = serde_json::to_vec(body).unwrap_or_default();
    bytes.push(b'\n');
    let mut response = Response::new(GatewayBody::from(Bytes::from(bytes)));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

pub(crate) fn text(body: String) -> Response<GatewayBody> {
    let mut response = Response::new(GatewayBody::from(Bytes::from(body)));
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}
