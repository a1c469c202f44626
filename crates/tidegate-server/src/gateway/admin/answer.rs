use super::{ControlPlane, GatewayStats, busy_threshold, metrics};
use crate::gateway::decision_log;
use crate::http::admission::Unauthorized;
use crate::http::error_response::{ResponseFormat, Unread};
use crate::http::response::{self, json};
use crate::http::{Handler, Phase, Port, ResponseBody};
use http::{Method, Request, Response};
use http_body::Body as _;
use hyper::body::Incoming;

/// Answers a request to the control plane. It counts as Critical, and so is never refused.
///
/// With `guarded`, snapshots are for clients with a token alone; where operators have tokens, they are for these.
pub async fn answer(
    control: &ControlPlane,
    handler: Handler,
    request: Request<Incoming>,
    guarded: bool,
) -> Response<ResponseBody> {
    let format = ResponseFormat::of(&request);
    let permit = control.admission.tracker().try_acquire(handler.kind().class().priority()).ok();
    let unread = if request.body().is_end_stream() { Unread::None } else { Unread::Some };
    let changes = handler == Handler::BusyThreshold;
    let response = if !(changes || matches!(*request.method(), Method::GET | Method::HEAD)) {
        Handler::read_only()
    } else if let Err(unauthorized) = admit(control, handler, &request, guarded) {
        unauthorized.respond(format)
    } else {
        match handler {
            Handler::HealthLive => live(control),
            Handler::HealthReady => ready(control),
            Handler::Metrics => response::metrics(metrics::render(control)),
            Handler::Usage => match control.extension(handler.path()) {
                Some(extension) => extension.answer(request, control.caller(Port::Operators)).await,
                None => Handler::not_found(),
            },
            Handler::Decisions => decision_log::answer(&control.decisions, request.uri().query())
                .unwrap_or_else(|error| error.respond()),
            Handler::Stats => json(&GatewayStats::of(control)),
            Handler::BusyThreshold => {
                let (response, read) = thresholds(control, request, guarded).await;
                if let Some(permit) = permit {
                    permit.success();
                }
                let unread = if read { Unread::None } else { unread };
                return format.fit(response, unread);
            }
        }
    };
    if let Some(permit) = permit {
        permit.success();
    }
    format.fit(response, unread)
}

/// Answers `/busy_threshold`; with whether the request was read to its end.
async fn thresholds(
    control: &ControlPlane,
    request: Request<Incoming>,
    guarded: bool,
) -> (Response<ResponseBody>, bool) {
    // Reading thresholds needs no more than the request's head.
    let reads = !matches!(*request.method(), Method::GET | Method::HEAD);
    match busy_threshold::answer(control, request, guarded).await {
        Ok(thresholds) => (json(&thresholds), reads),
        Err(error) => (error.respond(), reads && error.is_after_reading()),
    }
}

fn admit(
    control: &ControlPlane,
    handler: Handler,
    request: &Request<Incoming>,
    guarded: bool,
) -> Result<(), Unauthorized> {
    let classifier = control.admission.classifier();
    match handler {
        _ if !handler.is_telling() => Ok(()),
        _ if !guarded && handler.is_open_at(control.config.listen.admin_address) => Ok(()),
        Handler::Usage => classifier.usage_client(request, guarded).map(drop),
        _ if classifier.has_operators() => classifier.require_operator(request),
        _ if guarded => classifier.require_known(request),
        _ => Ok(()),
    }
}

fn live(control: &ControlPlane) -> Response<ResponseBody> {
    let stuck: Vec<usize> = control.threads.stuck().collect();
    match stuck.is_empty() {
        true => response::health(true, &serde_json::json!({ "status": "live" })),
        false => response::health(
            false,
            &serde_json::json!({ "status": "stuck", "stuck_threads": stuck }),
        ),
    }
}

fn ready(control: &ControlPlane) -> Response<ResponseBody> {
    let up = control.fleet.monitor().upstreams().iter().filter(|upstream| upstream.up).count();
    let total = control.fleet.all().len();
    let status = match control.phase() {
        Phase::Draining => "draining",
        Phase::Serving if up == 0 => "no_upstream",
        Phase::Serving => "ready",
    };
    let state = control.admission.tracker().load_state();
    let mut body = serde_json::json!({
        "status": status, "upstreams_up": up, "upstreams": total, "load_state": state,
    });
    // Shown and not judged: requests can be served while another part of the node has to wait.
    for (field, value) in control.node.extensions.iter().filter_map(|part| part.readiness()) {
        body[field] = value;
    }
    response::health(status == "ready", &body)
}
