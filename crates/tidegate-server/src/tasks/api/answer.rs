use super::error::TaskApiError;
use super::event_stream::{EventStream, Watcher};
use super::listing::{since_query, stream_query, task_query};
use super::position::Position;
use super::route::{Operation, TaskRoute};
use super::submission::SubmissionHead;
use super::task_api::TaskApi;
use crate::http::admission::{Claim, Classifier, Unauthorized};
use crate::http::error_response::{ResponseFormat, Unread, rejected};
use crate::http::read_body::{collect, read_away};
use crate::http::request::is_cross_origin;
use crate::http::{Caller, Phase, Port, ResponseBody, response};
use crate::tasks::manager::{TaskError, TaskView};
use bytes::Bytes;
use http::header::{self, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Request, Response};
use http_body::Body;
use serde_json::json;
use std::time::Duration;
use tidegate::task::{OutputChunk, OutputStream, TaskId, TaskStatus};
use tidegate::{MessagePriority, Outcome};
use tokio::sync::watch;

/// Longest time for a submission to arrive: a task at its limits then needs 100 KiB/s.
const READ_MAX: Duration = Duration::from_secs(30);

static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// A request about tasks with what answers it.
struct Answering<'a> {
    api: &'a TaskApi,
    phase: watch::Receiver<Phase>,
    claim: Claim<'a>,
    parts: Parts,
}

/// Answers a request about tasks. The head decides everything that it can before the body is read.
///
/// # Cancel safety
///
/// Dropped when the client leaves: the operation may have taken effect all the same.
pub async fn answer_task<B: Body<Data = Bytes> + Unpin>(
    api: &TaskApi,
    route: TaskRoute,
    request: Request<B>,
    caller: Caller<'_>,
) -> Response<ResponseBody> {
    let format = ResponseFormat::of(&request);
    let Caller { admission, policy, phase, port } = caller;
    let claim = match claim(admission.classifier(), admission.is_exposed(), &request, &port) {
        Ok(claim) => claim,
        Err(unauthorized) => {
            let unread = read_away(request).await;
            return format.fit(unauthorized.respond(format), unread);
        }
    };
    let operation = match route.operation(request.method()) {
        Ok(operation) => operation,
        Err(error) => {
            let unread = read_away(request).await;
            return format.fit(error.respond(format), unread);
        }
    };
    let share = match port {
        Port::Clients(_) => claim.client.and_then(|client| admission.classifier().share_of(client)),
        Port::Operators => None,
    };
    // A dry run counts its would-be refusals for proxied requests alone.
    let permits = match admission.admit(priority(&operation, claim, &port), share, |_| ()) {
        Ok(permits) => permits,
        Err(rejection) => {
            let unread = read_away(request).await;
            return format.fit(rejected(&rejection, policy, format), unread);
        }
    };
    let (parts, body) = request.into_parts();
    let answering = Answering { api, phase, claim, parts };
    let (answer, unread) = answering.answer(operation, body, port).await;
    match answer {
        Ok(response) => {
            permits.finish(Outcome::Success);
            format.fit(response, unread)
        }
        // Dropped permits are ignored by the load measurement.
        Err(error) => format.fit(error.respond(format), unread),
    }
}

/// The claim of a request's client. On a port that other hosts reach, tasks are for known clients alone.
pub(super) fn claim<'a, B>(
    classifier: &'a Classifier,
    exposed: bool,
    request: &Request<B>,
    port: &Port,
) -> Result<Claim<'a>, Unauthorized> {
    match port {
        Port::Operators => classifier.operators_claim(request),
        Port::Clients(_) => {
            if exposed {
                classifier.require_known(request)?;
            }
            classifier.claim(request)
        }
    }
}

fn priority(operation: &Operation, claim: Claim<'_>, port: &Port) -> MessagePriority {
    let class = operation.kind().class().priority();
    match (operation, port) {
        // A submission starts work: it has its client's priority on either port.
        (Operation::Submit, _) => claim.priority,
        (Operation::Cancel(_), _) => class,
        (_, Port::Operators) => MessagePriority::Critical,
        (_, Port::Clients(_)) => class.capped_at(claim.priority),
    }
}

// === impl Answering ===

impl Answering<'_> {
    /// Answers, and says whether a part of the request is unread.
    async fn answer<B: Body<Data = Bytes> + Unpin>(
        self,
        operation: Operation,
        body: B,
        port: Port,
    ) -> (Result<Response<ResponseBody>, TaskApiError>, Unread) {
        let unread = if body.is_end_stream() { Unread::None } else { Unread::Some };
        // A web page can make its reader's browser send a request, but not with a token.
        if operation.changes() && self.claim.client.is_none() && is_cross_origin(&self.parts) {
            return (Err(TaskApiError::CrossOrigin), unread);
        }
        let answer = match operation {
            Operation::Submit => return self.submit(body, unread).await,
            Operation::List => self.list().await,
            Operation::Get(id) => self.get(&id).await,
            Operation::Cancel(id) => self.cancel(&id).await,
            Operation::Output(id) => self.output(&id).await,
            Operation::Events(id) => self.events(&id, port).await,
            Operation::Progress(id) => self.progress(&id).await,
            Operation::Executors => self.executors().await,
            Operation::Workers => self.workers(),
        };
        (answer, unread)
    }

    async fn submit<B: Body<Data = Bytes>>(
        self,
        body: B,
        unread: Unread,
    ) -> (Result<Response<ResponseBody>, TaskApiError>, Unread) {
        let settings = &self.api.settings;
        let head = match SubmissionHead::of(&self.parts.headers, self.claim) {
            Ok(head) => head,
            Err(error) => return (Err(error), unread),
        };
        let bytes_max = settings.body_bytes_max();
        let bytes = match collect(body, bytes_max, READ_MAX).await {
            Ok(bytes) => bytes,
            Err(error) => return (Err(TaskApiError::of_reading(error, bytes_max)), unread),
        };
        let submitted = async {
            let submit = head.with_body(&bytes, settings)?;
            submit.spec.check(&settings.limits).map_err(TaskError::from)?;
            let (view, new) = self.api.manager.submit(submit).await?;
            let mut response = if new { response::created(&view) } else { response::json(&view) };
            let location = HeaderValue::from_str(&format!("/v1/tasks/{}", view.id));
            if let Ok(location) = location {
                response.headers_mut().insert(header::LOCATION, location);
            }
            Ok(response)
        };
        (submitted.await, Unread::None)
    }

    async fn list(&self) -> Result<Response<ResponseBody>, TaskApiError> {
        let mut query = task_query(self.parts.uri.query())?;
        query.client = self.only_of().map(Into::into);
        Ok(response::json(&self.api.manager.list(query).await?))
    }

    async fn get(&self, id: &TaskId) -> Result<Response<ResponseBody>, TaskApiError> {
        Ok(response::json(&self.visible(id).await?))
    }

    /// The client whose tasks alone the request may see; `None` for all tasks.
    fn only_of(&self) -> Option<&str> {
        if self.claim.is_operator { None } else { Some(self.claim.client.unwrap_or_default()) }
    }

    /// A task of the client that asks. Of another's nothing is told, not even that it exists.
    async fn visible(&self, id: &TaskId) -> Result<TaskView, TaskApiError> {
        let view = self.api.manager.task(id).await?;
        match self.only_of() {
            Some(client) if view.client.as_deref() != Some(client) => {
                Err(TaskError::NotFound(id.clone()).into())
            }
            _ => Ok(view),
        }
    }

    /// Checks that the request may see a task. The client of a task never changes, so what follows may rely on it.
    async fn check(&self, id: &TaskId) -> Result<(), TaskApiError> {
        match self.only_of() {
            Some(_) => self.visible(id).await.map(drop),
            None => Ok(()),
        }
    }

    /// Cancels a task. Repeated requests succeed, for clients that lost the first response.
    async fn cancel(&self, id: &TaskId) -> Result<Response<ResponseBody>, TaskApiError> {
        self.check(id).await?;
        let view = match self.api.manager.cancel(id).await {
            Err(TaskError::Over { status, .. }) if status == TaskStatus::Cancelled.name() => {
                self.api.manager.task(id).await?
            }
            result => result?,
        };
        let over = view.status.is_over();
        Ok(if over { response::json(&view) } else { response::accepted(&view) })
    }

    async fn output(&self, id: &TaskId) -> Result<Response<ResponseBody>, TaskApiError> {
        let stream = stream_query(self.parts.uri.query())?;
        self.check(id).await?;
        let chunks = self.api.manager.output(id).await?;
        Ok(match stream {
            Some(stream) => plain(&chunks, stream),
            None => response::json(&json!({ "id": id, "chunks": chunks })),
        })
    }

    async fn events(
        &self,
        id: &TaskId,
        port: Port,
    ) -> Result<Response<ResponseBody>, TaskApiError> {
        let watchers = &self.api.watchers;
        let (permit, in_use) = match port {
            Port::Clients(in_use) => (watchers.client(self.claim.owner()), Some(in_use)),
            Port::Operators => (watchers.operator(), None),
        };
        let permit = permit.ok_or(TaskApiError::WatchersFull)?;
        self.check(id).await?;
        let watch = self.api.manager.watch(id).await?;
        let seen = self.parts.headers.get(&LAST_EVENT_ID).and_then(|seen| seen.to_str().ok());
        let watcher = Watcher {
            seen: seen.and_then(|seen| seen.parse::<Position>().ok()).unwrap_or_default(),
            permit,
            in_use,
            phase: self.phase.clone(),
            stall_max: self.api.stall_max,
        };
        let events = EventStream::of(self.api.manager.clone(), watch, watcher);
        let mut response = response::uncached("text/event-stream", ResponseBody::stream(events));
        // Otherwise a proxy in between may buffer the events.
        response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
        Ok(response)
    }

    async fn progress(&self, id: &TaskId) -> Result<Response<ResponseBody>, TaskApiError> {
        let since_ms = since_query(self.parts.uri.query())?;
        self.check(id).await?;
        Ok(response::json(&self.api.manager.progress(id, since_ms).await?))
    }

    /// Every worker that dials; for operators, because names and addresses of machines are theirs.
    fn workers(&self) -> Result<Response<ResponseBody>, TaskApiError> {
        match &self.api.workers {
            Some(workers) if self.claim.is_operator => Ok(response::json(&workers.list())),
            Some(_) => Err(TaskApiError::OperatorsOnly),
            None => Err(TaskApiError::NoWorkers),
        }
    }

    async fn executors(&self) -> Result<Response<ResponseBody>, TaskApiError> {
        let mut list = self.api.manager.executors().await?;
        if !self.claim.is_operator {
            // Clients choose among runtimes; addresses and the number of others' tasks are not theirs.
            list.tasks.clear();
            list.executors.iter_mut().for_each(|executor| executor.url.clear());
        }
        Ok(response::json(&list))
    }
}

fn plain(chunks: &[OutputChunk], stream: OutputStream) -> Response<ResponseBody> {
    let texts = chunks.iter().filter(|chunk| chunk.stream == stream).map(|chunk| &*chunk.text);
    let body = Bytes::from(texts.collect::<String>()).into();
    let mut response = response::uncached("text/plain; charset=utf-8", body);
    // A task's output is untrusted: browsers must not treat it as a web page.
    let nosniff = HeaderValue::from_static("nosniff");
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
    response
}
