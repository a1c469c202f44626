use super::events::{EventStream, Watcher};
use super::listing::{stream_query, task_query};
use super::route::{Ask, TaskRoute};
use super::submission::SubmissionHead;
use super::{Position, TaskApiError};
use crate::control::busy_threshold::is_cross_origin;
use crate::control::json_response;
use crate::control::read_body::collect;
use crate::gateway::{Busy, Shared};
use crate::manager::{DeskError, TaskDesk};
use crate::proxy::{Claim, Gatekeeper, GatewayBody, Unauthorized, admit, read_away};
use crate::rescue::{self, Asker, Unread};
use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Request, Response, StatusCode};
use http_body::Body;
use serde_json::json;
use std::time::Duration;
use tidegate::task::{OutputChunk, OutputStream, TaskId, TaskStatus};
use tidegate::{MessagePriority, Outcome};

/// How long a submission may take to come: a task at its limits in that time is 100 KiB a second.
const READ_MAX: Duration = Duration::from_secs(30);

static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Which port a request came in by.
pub enum Door {
    /// The clients'. Their connection is kept from counting as quiet.
    Clients(Busy),
    /// The operators' own: what they ask is Critical, but for what is work.
    Operators,
}

/// One request about tasks, and what it is answered with.
struct Answering<'a> {
    shared: &'a Shared,
    desk: &'a TaskDesk,
    claim: Claim<'a>,
    parts: Parts,
}

/// Answers a request about tasks. Everything that its head tells is decided before its body is read.
///
/// # Cancel safety
///
/// Dropped when the client leaves: what it wanted may have happened all the same.
pub async fn answer_task<B: Body<Data = Bytes> + Unpin>(
    shared: &Shared,
    desk: &TaskDesk,
    route: TaskRoute,
    request: Request<B>,
    door: Door,
) -> Response<GatewayBody> {
    let asker = Asker::of(&request);
    let claim = match claim(&shared.gatekeeper, shared.exposed, &request, &door) {
        Ok(claim) => claim,
        Err(unauthorized) => {
            let unread = read_away(request).await;
            return asker.fit(rescue::unauthorized(unauthorized, asker), unread);
        }
    };
    let ask = match route.ask(request.method()) {
        Ok(ask) => ask,
        Err(error) => {
            let unread = read_away(request).await;
            return asker.fit(rescue::task(&error, asker), unread);
        }
    };
    let share = match door {
        Door::Clients(_) => claim.client.and_then(|client| shared.gatekeeper.share_of(client)),
        Door::Operators => None,
    };
    // What a dry run would have refused is counted for what is proxied.
    let places = match admit(shared, priority(&ask, claim, &door), share, |_| ()) {
        Ok(places) => places,
        Err(no_place) => {
            let unread = read_away(request).await;
            return asker.fit(rescue::refused(shared, no_place, asker), unread);
        }
    };
    let (parts, body) = request.into_parts();
    let answering = Answering { shared, desk, claim, parts };
    let (answer, unread) = answering.answer(ask, body, door).await;
    match answer {
        Ok(response) => {
            places.finish(Outcome::Success);
            asker.fit(response, unread)
        }
        // Dropped, the places say nothing about the load.
        Err(error) => asker.fit(rescue::task(&error, asker), unread),
    }
}

/// Who asks, and what it may. On a port that others can reach, what is done and known here is for known clients.
pub(super) fn claim<'a, B>(
    gatekeeper: &'a Gatekeeper,
    exposed: bool,
    request: &Request<B>,
    door: &Door,
) -> Result<Claim<'a>, Unauthorized> {
    match door {
        Door::Operators => Ok(gatekeeper.operators_claim(request)),
        Door::Clients(_) => {
            if exposed {
                gatekeeper.require_known(request.headers())?;
            }
            gatekeeper.claim(request)
        }
    }
}

fn priority(ask: &Ask, claim: Claim<'_>, door: &Door) -> MessagePriority {
    let class = ask.kind().class().priority();
    match (ask, door) {
        // It starts work, and is as urgent as who wants it may say, on either port.
        (Ask::Submit, _) => claim.priority,
        (Ask::Cancel(_), _) => class,
        (_, Door::Operators) => MessagePriority::Critical,
        (_, Door::Clients(_)) => class.capped_at(claim.priority),
    }
}

// === impl Answering ===

impl Answering<'_> {
    /// With the answer: whether something of the request is left.
    async fn answer<B: Body<Data = Bytes> + Unpin>(
        self,
        ask: Ask,
        body: B,
        door: Door,
    ) -> (Result<Response<GatewayBody>, TaskApiError>, Unread) {
        let unread = if body.is_end_stream() { Unread::None } else { Unread::Some };
        // A page can make its reader's browser ask, but not with a token, which it does not know.
        if ask.changes() && self.claim.client.is_none() && is_cross_origin(&self.parts) {
            return (Err(TaskApiError::CrossOrigin), unread);
        }
        let answer = match ask {
            Ask::Submit => return self.submit(body, unread).await,
            Ask::List => self.list().await,
            Ask::Get(id) => self.get(&id).await,
            Ask::Cancel(id) => self.cancel(&id).await,
            Ask::Output(id) => self.output(&id).await,
            Ask::Events(id) => self.events(&id, door).await,
            Ask::Executors => self.executors().await,
        };
        (answer, unread)
    }

    async fn submit<B: Body<Data = Bytes>>(
        self,
        body: B,
        unread: Unread,
    ) -> (Result<Response<GatewayBody>, TaskApiError>, Unread) {
        let terms = &self.shared.task_terms;
        let head = match SubmissionHead::of(&self.parts.headers, self.claim) {
            Ok(head) => head,
            Err(error) => return (Err(error), unread),
        };
        let bytes_max = terms.body_bytes_max();
        let bytes = match collect(body, bytes_max, READ_MAX).await {
            Ok(bytes) => bytes,
            Err(error) => return (Err(TaskApiError::of_reading(error, bytes_max)), unread),
        };
        let submitted = async {
            let submit = head.with_body(&bytes, terms)?;
            submit.spec.check(&terms.limits).map_err(DeskError::from)?;
            let (view, new) = self.desk.submit(submit).await?;
            let status = if new { StatusCode::CREATED } else { StatusCode::OK };
            let mut response = json_response(status, &view);
            let location = HeaderValue::from_str(&format!("/v1/tasks/{}", view.id));
            if let Ok(location) = location {
                response.headers_mut().insert(header::LOCATION, location);
            }
            Ok(response)
        };
        (submitted.await, Unread::None)
    }

    async fn list(&self) -> Result<Response<GatewayBody>, TaskApiError> {
        let query = task_query(self.parts.uri.query())?;
        Ok(json_response(StatusCode::OK, &self.desk.list(query).await?))
    }

    async fn get(&self, id: &TaskId) -> Result<Response<GatewayBody>, TaskApiError> {
        Ok(json_response(StatusCode::OK, &self.desk.task(id).await?))
    }

    /// One that was cancelled before is cancelled: whoever lost the first answer may ask again.
    async fn cancel(&self, id: &TaskId) -> Result<Response<GatewayBody>, TaskApiError> {
        let view = match self.desk.cancel(id).await {
            Err(DeskError::Over { status, .. }) if status == TaskStatus::Cancelled.name() => {
                self.desk.task(id).await?
            }
            asked => asked?,
        };
        let over = view.status.is_over();
        let status = if over { StatusCode::OK } else { StatusCode::ACCEPTED };
        Ok(json_response(status, &view))
    }

    async fn output(&self, id: &TaskId) -> Result<Response<GatewayBody>, TaskApiError> {
        let stream = stream_query(self.parts.uri.query())?;
        let chunks = self.desk.output(id).await?;
        Ok(match stream {
            Some(stream) => plain(&chunks, stream),
            None => json_response(StatusCode::OK, &json!({ "id": id, "chunks": chunks })),
        })
    }

    async fn events(&self, id: &TaskId, door: Door) -> Result<Response<GatewayBody>, TaskApiError> {
        let watchers = &self.shared.task_watchers;
        let (place, busy) = match door {
            Door::Clients(busy) => (watchers.client(), Some(busy)),
            Door::Operators => (watchers.operator(), None),
        };
        let place = place.ok_or(TaskApiError::WatchersFull)?;
        let watch = self.desk.watch(id).await?;
        let seen = self.parts.headers.get(&LAST_EVENT_ID).and_then(|seen| seen.to_str().ok());
        let watcher = Watcher {
            seen: seen.and_then(|seen| seen.parse::<Position>().ok()).unwrap_or_default(),
            place,
            busy,
            phase: self.shared.phase.clone(),
            stall_max: self.shared.config.proxy.stream_idle_timeout,
        };
        let events = EventStream::of(self.desk.clone(), watch, watcher);
        let mut response = Response::new(GatewayBody::Events(events));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        // Else a proxy between here and there may keep them until there are enough.
        headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
        Ok(response)
    }

    async fn executors(&self) -> Result<Response<GatewayBody>, TaskApiError> {
        Ok(json_response(StatusCode::OK, &self.desk.executors().await?))
    }
}

fn plain(chunks: &[OutputChunk], stream: OutputStream) -> Response<GatewayBody> {
    let texts = chunks.iter().filter(|chunk| chunk.stream == stream).map(|chunk| &*chunk.text);
    let mut response = Response::new(GatewayBody::from(Bytes::from(texts.collect::<String>())));
    let headers = response.headers_mut();
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    headers.insert(header::CONTENT_TYPE, kind);
    // What a task wrote is whatever it likes, and no page.
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
