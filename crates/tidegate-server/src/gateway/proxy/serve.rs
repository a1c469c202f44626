use super::dispatch::Dispatch;
use super::request::{Coding, Intake, OutgoingHead, strip};
use super::response::{Admitted, Exchange, GatewayBody, ProxiedBody, ResponseGuard, tunnel};
use super::selection::Selection;
use super::{ClientContext, ProxyError};
use crate::config::AuthorizationPolicy;
use crate::gateway::activity::{Order, ResponseStream};
use crate::gateway::admin::{ControlPlane, answer};
use crate::gateway::decision_log::PendingDecision;
use crate::gateway::upstream::TriedUpstreams;
use crate::http::admission::{API_KEY_HEADER, Classified, TokenFields};
use crate::http::client::{EndpointBody, UploadWatch};
use crate::http::error_response::{ResponseFormat, Unread, rejected};
use crate::http::read_body::{discard_short, read_away};
use crate::http::request::has;
use crate::http::wire::{CONNECTION_BYTES, H2_STREAM_WINDOW};
use crate::http::{Handler, InUse, Port, Rejection, ResponseBody, response};
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Request, Response, Version};
use http_body::Body;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate::Outcome;

/// Says that a request can be sent twice: whoever gets it knows it by this key.
static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// The time that a request waited in the queue, in milliseconds; on the responses to those that did.
static QUEUE_MS: HeaderName = HeaderName::from_static("tidegate-queue-ms");

/// Answers one request on the data port: by the control plane, by a refusal, or by an upstream.
///
/// Everything up to the admission, and to the choice of an upstream where one model is served, looks at the head
/// alone: a refusal costs the same whatever the size of the body, which is not read.
///
/// # Cancel safety
///
/// Dropped when the client leaves: the upstream's request is cancelled and the permit ends as ignored.
pub async fn serve(
    client: Arc<ClientContext>,
    mut request: Request<Incoming>,
) -> Result<Response<GatewayBody>, Infallible> {
    if let Some(certificate) = &client.certificate {
        request.extensions_mut().insert(certificate.clone());
    }
    let handler = Handler::of(request.uri().path()).filter(|handler| !handler.is_operators_alone());
    let mut response = match &client.reserved {
        Some(reserved) if !reserved.admits(handler.is_some()) => {
            Box::pin(refuse_connection(&client, request)).await
        }
        _ => respond_to(&client, handler, request).await,
    };
    client.thread.date.stamp(response.headers_mut());
    Ok(response)
}

async fn respond_to(
    client: &ClientContext,
    handler: Option<Handler>,
    mut request: Request<Incoming>,
) -> Response<GatewayBody> {
    let thread = &*client.thread;
    let (control, admission) = (&*thread.control, &*thread.admission);
    let busy = client.activity.enter();
    if request.version() != Version::HTTP_11 {
        client.activity.note_takes_no_interim();
    }
    let started = Instant::now();
    if let Some(handler) = handler {
        let _answer = client.reserved.as_ref().map(|reserved| reserved.answer());
        let response = answer(control, handler, request, admission.is_exposed());
        let response = Box::pin(response).await;
        return response.map(GatewayBody::Own);
    }
    if let Some(extension) = control.extension(request.uri().path()) {
        let caller = control.caller(Port::Clients(InUse::new(busy)));
        return extension.answer(request, caller).await.map(GatewayBody::Own);
    }
    let format = ResponseFormat::of(&request);
    let Classified { client: name, priority, share, flow, tokens } =
        match admission.classifier().classified(&request) {
            Ok(classified) => classified,
            Err(unauthorized) => {
                let unread = Box::pin(read_away(request)).await;
                let response = format.fit(unauthorized.respond(format), unread);
                return response.map(GatewayBody::Own);
            }
        };
    thread.metrics.issued();
    thread.record_request(started);
    let would_reject = |reason| thread.metrics.would_reject(reason);
    let decided = admission.admit(priority, share, would_reject);
    let entry = thread.recorder.begin(started, priority, || name);
    let permits = match decided {
        Ok(permits) => permits,
        Err(rejection) => {
            thread.metrics.rejected(rejection.reason());
            entry.refused(rejection.reason());
            let is_empty = request.body().is_end_stream();
            let unread = if is_empty { Unread::None } else { Box::pin(read_away(request)).await };
            return refuse(control, &rejection, format, unread);
        }
    };
    strip_tokens(request.headers_mut(), tokens, thread.config.proxy.authorization);
    let admitted = Admitted { permits, flow, started, busy, queued: thread.metrics.queue() };
    let mut entry = Some(entry);
    match forward(client, request, format.grpc, admitted, &mut entry).await {
        Ok(response) => response,
        Err((ProxyError::Rejected(rejection), unread)) => {
            thread.metrics.rejected(rejection.reason());
            if let Some(entry) = entry {
                entry.rejected(rejection.reason());
            }
            refuse(control, &rejection, format, unread)
        }
        Err((error, unread)) => {
            thread.metrics.failed(error.kind().1, priority, started.elapsed());
            let response = error.respond(admission.is_exposed(), format);
            format.fit(response, unread).map(GatewayBody::Own)
        }
    }
}

/// Refuses a connection beyond the limit, whose request is not Critical, and ends it.
async fn refuse_connection(
    client: &ClientContext,
    request: Request<Incoming>,
) -> Response<GatewayBody> {
    let _busy = client.activity.enter();
    let format = ResponseFormat::of(&request);
    let closes = request.version() != Version::HTTP_2;
    let unread = read_away(request).await;
    let rejection = Rejection::connection_limit();
    let mut response = refuse(&client.thread.control, &rejection, format, unread);
    if closes {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    client.activity.give(Order::End);
    response
}

fn refuse(
    control: &ControlPlane,
    rejection: &Rejection,
    format: ResponseFormat,
    unread: Unread,
) -> Response<GatewayBody> {
    format
        .fit(rejected(rejection, control.rejection_policy(), format), unread)
        .map(GatewayBody::Own)
}

async fn forward(
    client: &ClientContext,
    mut request: Request<Incoming>,
    grpc: bool,
    admitted: Admitted,
    entry: &mut Option<PendingDecision>,
) -> Result<Response<GatewayBody>, (ProxyError, Unread)> {
    let thread = &*client.thread;
    let config = &*thread.config;
    let client_upgrade =
        has(request.headers(), &header::UPGRADE).then(|| hyper::upgrade::on(&mut request));
    let route_model = thread.admission.classifier().model(&request).map(str::to_owned);
    let mut intake = Intake::new(request);
    let chunked = !intake.is_read() && intake.length().is_none();
    let rank = (admitted.permits.priority(), admitted.flow);
    let selection = match Selection::of(thread, &mut intake, route_model, rank).await {
        Ok(selection) => selection,
        Err(error) if error.is_clients() => return Err((error, Unread::Some)),
        Err(error) => return Err((error, unread_of(intake).await)),
    };
    let first = match selection.acquire(thread, &TriedUpstreams::default()).await {
        Ok(reservation) => reservation,
        Err(error) => return Err((error, unread_of(intake).await)),
    };
    let replay = replayable(&mut intake, config.listen.header_timeout).await;
    let replay = replay.map_err(|error| (error, Unread::Some))?;
    let unread = if intake.is_read() { Unread::None } else { Unread::Some };
    let head =
        OutgoingHead::prepare(&mut intake.parts, &client.forwarded, config, &thread.via, chunked)
            .map_err(|error| (error, unread))?;
    let streams = intake.parts.version == Version::HTTP_2;
    let (parts, body, upload) = intake.into_upload();
    // The client of a gRPC stream sends when it has something to say, and its stream has deadlines of its own.
    if let Some(upload) = &upload
        && unread == Unread::Some
        && !grpc
    {
        client.activity.watch_upload(upload);
    }
    let upload_seen = upload.clone();
    let dispatch = Dispatch { thread, head: &head, selection: &selection, upload, grpc, replay };
    let mut request = Some(Request::from_parts(parts, body));
    match dispatch.send(&mut request, first).await {
        Ok((response, reservation)) => {
            let waited = reservation.waited();
            let unread = still_unread(upload_seen.as_deref());
            let (status, entry) = (response.status(), entry.take());
            let exchange = Exchange::new(thread, admitted, reservation, upload_seen, status, entry);
            let upgrade = client_upgrade.filter(|_| head.wants_upgrade());
            let answer = respond(response, exchange, upgrade, client, streams);
            let told = |mut answer: Response<GatewayBody>| {
                if !waited.is_zero() {
                    let ms = u64::try_from(waited.as_millis()).unwrap_or(u64::MAX);
                    answer.headers_mut().insert(QUEUE_MS.clone(), HeaderValue::from(ms));
                }
                answer
            };
            answer.map(told).map_err(|error| (error, unread))
        }
        Err(error) => {
            // What the client did says nothing about the load; what an upstream did may.
            let outcome = if error.is_clients() { Outcome::Ignored } else { Outcome::Dropped };
            admitted.permits.finish(outcome);
            Err((error, still_unread(upload_seen.as_deref())))
        }
    }
}

/// Reads a short rest of a refused request away.
async fn unread_of(intake: Intake) -> Unread {
    let expects = has(&intake.parts.headers, &header::EXPECT);
    discard_short(intake.into_unread(), expects).await
}

/// Removes the tokens of a client from what its upstream receives, unless they are to be passed on.
fn strip_tokens(headers: &mut HeaderMap, tokens: TokenFields, policy: AuthorizationPolicy) {
    // Another key takes the place of `Authorization` where it is replaced.
    if tokens.authorization && policy == AuthorizationPolicy::Strip {
        headers.remove(header::AUTHORIZATION);
    }
    if tokens.api_key && policy != AuthorizationPolicy::Pass {
        headers.remove(API_KEY_HEADER);
    }
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
    mut response: Response<EndpointBody>,
    exchange: Exchange,
    client_upgrade: Option<OnUpgrade>,
    client: &ClientContext,
    streams: bool,
) -> Result<Response<GatewayBody>, ProxyError> {
    let switches = response::switches_protocols(response.status());
    let stripped = strip(response.headers_mut());
    if stripped.coding == Some(Coding::Other) {
        return Err(exchange.bad_answer("its transfer coding is not `chunked`"));
    }
    if !has_one_length(response.headers()) {
        return Err(exchange.bad_answer("it has several lengths"));
    }
    let (mut parts, mut body) = response.into_parts();
    if response::has_no_content(parts.status) {
        // There is none, whatever the upstream says of its length.
        parts.headers.remove(header::CONTENT_LENGTH);
    }
    let held_upstream = match parts.version {
        Version::HTTP_2 => H2_STREAM_WINDOW as usize,
        _ => CONNECTION_BYTES,
    };
    parts.extensions.clear();
    // The version was the upstream's and says nothing about the client's connection.
    parts.version = Version::HTTP_11;
    let idle = client.thread.config.proxy.stream_idle_timeout;
    if !switches {
        let held = Arc::new(ResponseGuard::new(exchange));
        if streams {
            held.touch();
            let response: Arc<dyn ResponseStream> = Arc::clone(&held) as _;
            client.activity.watch_stream(Arc::downgrade(&response));
        }
        let buffer = client.activity.response_buffer(streams);
        buffer.begin(held_upstream);
        let body = GatewayBody::Proxied(ProxiedBody::new(body, held, buffer, streams, idle));
        return Ok(Response::from_parts(parts, body));
    }
    match (body.take_switched(), client_upgrade) {
        (Some(upstream), Some(asked)) => {
            if let Some(protocol) = stripped.upgrade {
                parts.headers.insert(header::UPGRADE, protocol);
            }
            parts.headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
            client.activity.switch_to(tunnel::spawn(asked, upstream, exchange, idle));
            Ok(Response::from_parts(parts, GatewayBody::Own(ResponseBody::EMPTY)))
        }
        // Passed on, it would leave the client in a protocol that it did not ask for.
        _ => Err(exchange.bad_answer("it switches protocols, and nobody asked it to")),
    }
}

fn has_one_length(headers: &HeaderMap) -> bool {
    let mut lengths = headers.get_all(header::CONTENT_LENGTH).iter();
    let first = lengths.next();
    lengths.all(|length| Some(length) == first)
}
