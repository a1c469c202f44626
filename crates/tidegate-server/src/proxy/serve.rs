use super::body::ProxiedBody;
use super::exchange::{Admitted, Exchange};
use super::head::OutgoingHead;
use super::held::Held;
use super::hop_by_hop::Coding;
use super::offer::Offer;
use super::upload::UploadWatch;
use super::{ClientContext, GatewayBody, ProxyError, UploadBody, hop_by_hop, tunnel};
use crate::control::{Handler, answer};
use crate::rescue::{self, Asker, Unread};
use http::header::{self, HeaderMap, HeaderValue};
use http::{Request, Response, StatusCode, Version};
use http_body::Body;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate::Outcome;
use tokio::time::timeout;

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
        Err(unauthorized) => {
            let unread = read_away(request).await;
            return Ok(asker.fit(rescue::unauthorized(unauthorized, asker), unread));
        }
    };
    let permit = match shared.tracker.try_admit_owned(priority) {
        Ok(permit) => permit,
        Err(refusal) => {
            let unread = read_away(request).await;
            return Ok(asker.fit(rescue::refused(shared, refusal, asker), unread));
        }
    };
    let admitted = Admitted { permit, started, busy };
    match forward(client, request, asker.grpc, admitted).await {
        Ok(response) => Ok(response),
        Err((error, unread)) => {
            thread.metrics.failed(&error, priority, started.elapsed());
            Ok(asker.fit(rescue::failed(&error, asker, shared.exposed), unread))
        }
    }
}

/// Reads a short body away, so that a refusal does not cost the connection. A long one is left, and so is one that
/// the client waits to be asked for; what is short enough to read costs about what it costs to have none.
async fn read_away(request: Request<Incoming>) -> Unread {
    const SHORT: u64 = 8 * 1024;
    const SOON: Duration = Duration::from_millis(50);
    if request.body().is_end_stream() {
        return Unread::None;
    }
    let short = request.body().size_hint().exact().is_some_and(|length| length <= SHORT);
    if !short || request.headers().contains_key(header::EXPECT) {
        return Unread::Some;
    }
    let mut body = request.into_body();
    let to_the_end = async {
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            if frame.is_err() {
                return Unread::Some;
            }
        }
        Unread::None
    };
    timeout(SOON, to_the_end).await.unwrap_or(Unread::Some)
}

async fn forward(
    client: &ClientContext,
    mut request: Request<Incoming>,
    grpc: bool,
    admitted: Admitted,
) -> Result<Response<GatewayBody>, (ProxyError, Unread)> {
    let thread = &*client.thread;
    let shared = &*thread.shared;
    let client_upgrade =
        request.headers().contains_key(header::UPGRADE).then(|| hyper::upgrade::on(&mut request));
    let (mut parts, body) = request.into_parts();
    let chunked = !body.is_end_stream() && body.size_hint().exact().is_none();
    let config = &shared.config.proxy;
    let unread = if body.is_end_stream() { Unread::None } else { Unread::Some };
    let head = OutgoingHead::prepare(&mut parts, client, config, &shared.via, chunked)
        .map_err(|error| (error, unread))?;
    let streams = parts.version == Version::HTTP_2;
    let (body, upload) = UploadBody::new(body);
    let offer = Offer { thread, head: &head, upload: upload.clone(), grpc };
    match offer.send(Request::from_parts(parts, body)).await {
        Ok((response, in_flight, connection)) => {
            let held = (in_flight, connection);
            let unread = still_unread(upload.as_deref());
            let exchange = Exchange::new(thread, admitted, held, upload, response.status());
            let upgrade = client_upgrade.filter(|_| head.wants_upgrade());
            respond(response, exchange, upgrade, client, streams).map_err(|error| (error, unread))
        }
        Err(error) => {
            // What the client did says nothing about the load; what an upstream did may.
            let outcome = if error.is_clients() { Outcome::Ignored } else { Outcome::Dropped };
            admitted.permit.finish(outcome);
            Err((error, still_unread(upload.as_deref())))
        }
    }
}

fn still_unread(upload: Option<&UploadWatch>) -> Unread {
    match upload {
        Some(upload) if !upload.has_ended() => Unread::Some,
        _ => Unread::None,
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
    if stripped.coding == Some(Coding::Other) {
        return Err(exchange.bad_answer("its transfer coding is not `chunked`"));
    }
    if !has_one_length(response.headers()) {
        return Err(exchange.bad_answer("it has several lengths"));
    }
    let (mut parts, body) = response.into_parts();
    if parts.status == StatusCode::NO_CONTENT {
        // There is none, whatever the upstream says of its length.
        parts.headers.remove(header::CONTENT_LENGTH);
    }
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
        (Some(_), None) => {
            Err(exchange.bad_answer("it switches protocols, and nobody asked it to"))
        }
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

fn has_one_length(headers: &HeaderMap) -> bool {
    let mut lengths = headers.get_all(header::CONTENT_LENGTH).iter();
    let first = lengths.next();
    lengths.all(|length| Some(length) == first)
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
