use super::body::ProxiedBody;
use super::exchange::{Admitted, Exchange};
use super::head::OutgoingHead;
use super::held::Held;
use super::hop_by_hop::Coding;
use super::intake::Intake;
use super::offer::Offer;
use super::places::admit;
use super::placing::Placing;
use super::upload::UploadWatch;
use super::{ClientContext, Entrant, GatewayBody, ProxyError, Rejection, hop_by_hop, tunnel};
use crate::control::{Door, Handler, TaskRoute, answer, answer_task};
use crate::record::Entry;
use crate::rescue::{self, Asker, Unread};
use crate::upstream::Tried;
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
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

/// Says that a request can be sent twice: whoever gets it knows it by this key.
static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Answers one request on the data port: by the control plane, by a refusal, or by an upstream.
///
/// Everything up to the admission, and to the choice of a worker where one model is served, looks at the head
/// alone: a refusal costs the same whatever the size of the body, which is not read.
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
    if let Some(handler) = Handler::of(request.uri().path())
        && !handler.is_operators_alone()
    {
        return Ok(answer(shared, handler, request, shared.exposed).await);
    }
    if let Some(desk) = &shared.tasks
        && let Some(route) = TaskRoute::of(request.uri().path())
    {
        return Ok(answer_task(shared, desk, route, request, Door::Clients(busy)).await);
    }
    let asker = Asker::of(&request);
    let Entrant { priority, share } = match shared.gatekeeper.entrant(&request) {
        Ok(entrant) => entrant,
        Err(unauthorized) => {
            let unread = read_away(request).await;
            return Ok(asker.fit(rescue::unauthorized(unauthorized, asker), unread));
        }
    };
    thread.metrics.issued();
    thread.retries.record_request(started.duration_since(shared.started));
    let would_reject = |rejection| thread.metrics.would_reject(rejection);
    let decided = admit(shared, priority, share, would_reject);
    let entry =
        thread.scribe.entry(started, priority, || shared.gatekeeper.name(request.headers()));
    let places = match decided {
        Ok(places) => places,
        Err(no_place) => {
            let rejection = no_place.rejection();
            thread.metrics.rejected(rejection);
            entry.refused(rejection);
            let unread = read_away(request).await;
            return Ok(asker.fit(rescue::refused(shared, no_place, asker), unread));
        }
    };
    let admitted = Admitted { places, started, busy, queued: thread.metrics.queue() };
    let mut entry = Some(entry);
    match forward(client, request, asker.grpc, admitted, &mut entry).await {
        Ok(response) => Ok(response),
        Err((error, unread)) => {
            match Rejection::of_error(&error) {
                Some(rejection) => {
                    thread.metrics.rejected(rejection);
                    if let Some(entry) = entry {
                        entry.rejected(rejection);
                    }
                }
                None => thread.metrics.failed(&error, priority, started.elapsed()),
            }
            Ok(asker.fit(rescue::failed(shared, &error, asker), unread))
        }
    }
}

/// Reads a short body away, so that a refusal does not cost the connection. A long one is left, and so is one that
/// the client waits to be asked for; what is short enough to read costs about what it costs to have none.
pub(crate) async fn read_away<B: Body + Unpin>(request: Request<B>) -> Unread {
    let expects = request.headers().contains_key(header::EXPECT);
    read_rest(request.into_body(), expects).await
}

async fn read_rest<B: Body + Unpin>(mut body: B, expects: bool) -> Unread {
    const SHORT: u64 = 8 * 1024;
    const SOON: Duration = Duration::from_millis(50);
    if body.is_end_stream() {
        return Unread::None;
    }
    let short = body.size_hint().exact().is_some_and(|length| length <= SHORT);
    if !short || expects {
        return Unread::Some;
    }
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
    entry: &mut Option<Entry>,
) -> Result<Response<GatewayBody>, (ProxyError, Unread)> {
    let thread = &*client.thread;
    let shared = &*thread.shared;
    let client_upgrade =
        request.headers().contains_key(header::UPGRADE).then(|| hyper::upgrade::on(&mut request));
    let route_model = shared.gatekeeper.model(&request).map(str::to_owned);
    let mut intake = Intake::new(request);
    let chunked = !intake.is_read() && intake.length().is_none();
    let placing =
        match Placing::of(thread, &mut intake, route_model, admitted.places.priority()).await {
            Ok(placing) => placing,
            Err(error) if error.is_clients() => return Err((error, Unread::Some)),
            Err(error) => return Err((error, unread_of(intake).await)),
        };
    let first = match placing.place(thread, &Tried::default()) {
        Ok(placed) => placed,
        Err(error) => return Err((error, unread_of(intake).await)),
    };
    let replay = replayable(&mut intake, shared.config.listen.header_timeout).await;
    let replay = replay.map_err(|error| (error, Unread::Some))?;
    let unread = if intake.is_read() { Unread::None } else { Unread::Some };
    let config = &shared.config;
    let head = OutgoingHead::prepare(&mut intake.parts, client, config, &shared.via, chunked)
        .map_err(|error| (error, unread))?;
    let streams = intake.parts.version == Version::HTTP_2;
    let (parts, body, upload) = intake.into_upload();
    let upload_seen = upload.clone();
    let offer = Offer { thread, head: &head, placing: &placing, upload, grpc, replay };
    match offer.send(Request::from_parts(parts, body), first).await {
        Ok((response, placed, connection)) => {
            let held = (placed, connection);
            let unread = still_unread(upload_seen.as_deref());
            let exchange =
                Exchange::new(thread, admitted, held, upload_seen, response.status(), entry.take());
            let upgrade = client_upgrade.filter(|_| head.wants_upgrade());
            respond(response, exchange, upgrade, client, streams).map_err(|error| (error, unread))
        }
        Err(error) => {
            // What the client did says nothing about the load; what an upstream did may.
            let outcome = if error.is_clients() { Outcome::Ignored } else { Outcome::Dropped };
            admitted.places.finish(outcome);
            Err((error, still_unread(upload_seen.as_deref())))
        }
    }
}

/// Reads a short rest of a refused request away.
async fn unread_of(intake: Intake) -> Unread {
    let expects = intake.parts.headers.contains_key(header::EXPECT);
    read_rest(intake.into_unread(), expects).await
}

/// The whole body of a request that may be sent again: its method is idempotent, or the client says by a key that
/// whoever gets it twice will know. `None` for all others, and for what is too long to be kept.
async fn replayable(
    intake: &mut Intake,
    stall: Duration,
) -> Result<Option<Vec<Bytes>>, ProxyError> {
    let says_so = || intake.parts.headers.get(&IDEMPOTENCY_KEY).is_some_and(|key| !key.is_empty());
    if !(intake.parts.method.is_idempotent() || says_so()) {
        return Ok(None);
    }
    if intake.is_empty() || intake.keep_if_short(stall).await? {
        return Ok(intake.copy());
    }
    Ok(None)
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
