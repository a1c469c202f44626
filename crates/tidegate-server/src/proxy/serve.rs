use super::body::ProxiedBody;
use super::exchange::{Admitted, Exchange, Offer};
use super::head::OutgoingHead;
use super::{ClientContext, GatewayBody, ProxyError, UploadBody, hop_by_hop, tunnel};
use crate::control::{Handler, answer};
use crate::gateway::ThreadContext;
use crate::rescue::{self, Asker};
use http::header::{self, HeaderMap, HeaderValue};
use http::{Request, Response, StatusCode, Version};
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;
use tidegate::Outcome;

/// Answers one request on the data port: by the control plane, by a refusal, or by an upstream.
///
/// Everything up to the admission looks at the head alone: a refusal costs the same whatever the size of the
/// body, which is not read.
///
/// # Cancel safety
///
/// Dropped when the client leaves: the upstream's request is cancelled and the permit ends as ignored.
pub async fn serve(
    client: Arc<ClientContext>,
    request: Request<Incoming>,
) -> Result<Response<GatewayBody>, Infallible> {
    let (client, thread) = (&*client, &*client.thread);
    let shared = &*thread.shared;
    let busy = client.activity.enter();
    let started = Instant::now();
    if let Some(handler) = Handler::of(request.uri().path()) {
        return Ok(answer(shared, handler, &request, shared.guards_stats));
    }
    let asker = Asker::of(&request);
    let priority = match shared.gatekeeper.priority(&request) {
        Ok(priority) => priority,
        Err(unauthorized) => return Ok(rescue::unauthorized(unauthorized, asker)),
    };
    let permit = match shared.tracker.try_admit_owned(priority) {
        Ok(permit) => permit,
        Err(refusal) => return Ok(rescue::refused(shared, refusal, asker)),
    };
    let admitted = Admitted { permit, started, busy };
    match forward(client, request, asker.grpc, admitted).await {
        Ok(response) => Ok(response),
        Err(error) => {
            thread.metrics.failed(&error, priority, started.elapsed());
            Ok(rescue::failed(&error, asker))
        }
    }
}

async fn forward(
    client: &ClientContext,
    mut request: Request<Incoming>,
    grpc: bool,
    admitted: Admitted,
) -> Result<Response<GatewayBody>, ProxyError> {
    let thread = &*client.thread;
    let shared = &*thread.shared;
    let client_upgrade =
        request.headers().contains_key(header::UPGRADE).then(|| hyper::upgrade::on(&mut request));
    let (mut parts, body) = request.into_parts();
    let head = OutgoingHead::prepare(&mut parts, client, &shared.config.proxy, &shared.via)?;
    let (body, upload) = UploadBody::new(body);
    let offer = Offer { thread, head: &head, upload: upload.clone(), grpc };
    match offer.send(Request::from_parts(parts, body)).await {
        Ok((response, in_flight, connection)) => {
            let held = (in_flight, connection);
            let exchange = Exchange::new(thread, admitted, held, upload, response.status());
            let upgrade = client_upgrade.filter(|_| head.wants_upgrade());
            respond(response, exchange, upgrade, thread)
        }
        Err(error) => {
            // What the client did says nothing about the load; what an upstream did may.
            let outcome = if error.is_clients() { Outcome::Ignored } else { Outcome::Dropped };
            admitted.permit.finish(outcome);
            Err(error)
        }
    }
}

fn respond(
    mut response: Response<Incoming>,
    exchange: Exchange,
    client_upgrade: Option<OnUpgrade>,
    thread: &ThreadContext,
) -> Result<Response<GatewayBody>, ProxyError> {
    let upstream_upgrade = (response.status() == StatusCode::SWITCHING_PROTOCOLS)
        .then(|| hyper::upgrade::on(&mut response));
    let stripped = hop_by_hop::strip(response.headers_mut());
    let (mut parts, body) = response.into_parts();
    parts.extensions.clear();
    // The version was the upstream's and says nothing about the client's connection.
    parts.version = Version::HTTP_11;
    let idle = thread.shared.config.proxy.stream_idle_timeout;
    match (upstream_upgrade, client_upgrade) {
        (Some(upstream), Some(client)) => {
            if let Some(protocol) = stripped.upgrade {
                parts.headers.insert(header::UPGRADE, protocol);
            }
            parts.headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
            tunnel::spawn(client, upstream, exchange, idle);
            Ok(Response::from_parts(parts, GatewayBody::EMPTY))
        }
        // Passed on, it would leave the client in a protocol that it did not ask for.
        (Some(_), None) => Err(exchange.unasked_upgrade()),
        (None, _) => {
            let body = GatewayBody::Proxied(ProxiedBody::new(body, exchange, idle));
            Ok(Response::from_parts(parts, body))
        }
    }
}

/// Whether a request speaks gRPC, by its content type.
pub fn is_grpc(headers: &HeaderMap) -> bool {
    headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}
