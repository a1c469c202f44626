use super::body::ProxiedBody;
use super::exchange::{Admitted, Exchange};
use super::head::OutgoingHead;
use super::held::Held;
use super::offer::Offer;
use super::{ClientContext, GatewayBody, ProxyError, UploadBody, hop_by_hop, tunnel};
use crate::control::{Handler, answer};
use crate::rescue::{self, Asker};
use http::header::{self, HeaderMap, HeaderValue};
use http::{Request, Response, StatusCode, Version};
use http_body::Body;
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
        return Ok(answer(shared, handler, &request, shared.exposed));
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
            Ok(rescue::failed(&error, asker, shared.exposed))
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
    let chunked = !body.is_end_stream() && body.size_hint().exact().is_none();
    let config = &shared.config.proxy;
    let head = OutgoingHead::prepare(&mut parts, client, config, &shared.via, chunked)?;
    let streams = parts.version == Version::HTTP_2;
    let (body, upload) = UploadBody::new(body);
    let offer = Offer { thread, head: &head, upload: upload.clone(), grpc };
    match offer.send(Request::from_parts(parts, body)).await {
        Ok((response, in_flight, connection)) => {
            let held = (in_flight, connection);
            let exchange = Exchange::new(thread, admitted, held, upload, response.status());
            let upgrade = client_upgrade.filter(|_| head.wants_upgrade());
            respond(response, exchange, upgrade, client, streams)
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
    client: &ClientContext,
    streams: bool,
) -> Result<Response<GatewayBody>, ProxyError> {
    let upstream_upgrade = (response.status() == StatusCode::SWITCHING_PROTOCOLS)
        .then(|| hyper::upgrade::on(&mut response));
    let stripped = hop_by_hop::strip(response.headers_mut());
    let (mut parts, body) = response.into_parts();
    parts.extensions.clear();
    // The version was the upstream's and says nothing about the client's connection.
    parts.version = Version::HTTP_11;
    let idle = client.thread.shared.config.proxy.stream_idle_timeout;
    match (upstream_upgrade, client_upgrade) {
        (Some(upstream), Some(asked)) => {
            if let Some(protocol) = stripped.upgrade {
                parts.headers.insert(header::UPGRADE, protocol);
            }
            parts.headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
            client.activity.switch_to(tunnel::spawn(asked, upstream, exchange, idle));
            Ok(Response::from_parts(parts, GatewayBody::EMPTY))
        }
        // Passed on, it would leave the client in a protocol that it did not ask for.
        (Some(_), None) => Err(exchange.unasked_upgrade()),
        (None, _) => {
            let held = Arc::new(Held::new(exchange));
            if streams {
                client.activity.watch_stream(&held);
            }
            let body = GatewayBody::Proxied(ProxiedBody::new(body, held, streams, idle));
            Ok(Response::from_parts(parts, body))
        }
    }
}

/// Whether a request speaks gRPC, by its content type.
pub fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    // Not gRPC-Web, which is made for HTTP/1.1.
    match kind.and_then(|kind| kind.strip_prefix(b"application/grpc")) {
        Some(rest) => matches!(rest.first(), None | Some(b'+' | b';')),
        None => false,
    }
}
