use super::access::WorkerAccess;
use super::request_error::RequestError;
use super::{metrics, parse};
use crate::http::error_response::{ResponseFormat, Unread};
use crate::http::request::{is_cross_origin, percent_decoded};
use crate::http::response::{self, json};
use crate::http::tls::{TlsPort, write_tls};
use crate::http::{Exposition, ResponseBody, write_process};
use crate::tasks::executor::error::ProgressRefused;
use crate::tasks::executor::executor::Executor;
use bytes::{Bytes, BytesMut};
use http::request::Parts;
use http::{Method, Request, Response, header};
use http_body::Body;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tidegate::progress::{LINE_BYTES_MAX, parse_line};
use tidegate::task::ExecutionKey;
use tokio::time::timeout;

/// Longest time for a body to arrive.
const BODY_TIME_MAX: Duration = Duration::from_secs(30);

/// Bytes of an oversized body that are read and discarded. Closing the connection on a client that still writes
/// resets it, and the response is lost.
const DISCARDED_BYTES_MAX: usize = 16 << 20;

/// Most JSON bytes for a byte of text: `\u0000`.
const JSON_BYTES_PER_BYTE: usize = 6;

/// Bytes for the names, braces and commas around the code.
const FRAME_BYTES: usize = 16 << 10;

/// Endpoint of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Route<'a> {
    Capacity,
    Execute,
    Reserve,
    Execution(&'a str),
    Progress(&'a str),
    Live,
    Ready,
    Metrics,
}

/// The routes of a worker's port.
pub(super) struct Routes {
    pub executor: Executor,
    pub access: WorkerAccess,
    pub started: SystemTime,
    pub tls: Vec<Arc<TlsPort>>,
}

// === impl Routes ===

impl Routes {
    /// Answers one request.
    pub async fn answer<B: Body<Data = Bytes>>(
        &self,
        request: Request<B>,
    ) -> Response<ResponseBody> {
        let format = ResponseFormat::of(&request);
        let (parts, body) = request.into_parts();
        let mut body = pin!(body);
        let answered = match self.admitted(&parts) {
            Err(error) => Err(error),
            Ok(route) => self.answer_at(route, &parts, body.as_mut()).await,
        };
        let unread = if body.is_end_stream() { Unread::None } else { Unread::Some };
        format.fit(answered.unwrap_or_else(|error| error.respond()), unread)
    }

    fn admitted<'a>(&self, parts: &'a Parts) -> Result<Route<'a>, RequestError> {
        let route = Route::of(parts.uri.path()).ok_or(RequestError::UnknownPath)?;
        // Health tells nothing but that the worker is there.
        if !matches!(route, Route::Live | Route::Ready) {
            self.access.admit(&parts.headers)?;
        }
        route.check(parts).map(|()| route)
    }

    async fn answer_at<B: Body<Data = Bytes>>(
        &self,
        route: Route<'_>,
        parts: &Parts,
        body: Pin<&mut B>,
    ) -> Result<Response<ResponseBody>, RequestError> {
        let executor = &self.executor;
        match route {
            Route::Execute => {
                execute(executor, &read(parts, body, execute_bytes_max(executor)).await?)
            }
            Route::Reserve => reserve(executor, &read(parts, body, FRAME_BYTES).await?),
            Route::Execution(id) => execution(executor, parts, id).await,
            Route::Progress(id) => {
                let key = percent_decoded(id).parse()?;
                progress(executor, key, &read(parts, body, LINE_BYTES_MAX).await?)
            }
            Route::Capacity => Ok(json(&executor.capacity())),
            Route::Live => Ok(json(&serde_json::json!({ "status": "live" }))),
            Route::Ready => Ok(ready(executor)),
            Route::Metrics => Ok(response::metrics(self.metrics_page())),
        }
    }

    fn metrics_page(&self) -> String {
        let mut out = Exposition::default();
        metrics::write(&mut out, &self.executor.capacity(), &self.executor.counts());
        write_tls(&mut out, &self.tls);
        write_process(&mut out, self.started);
        out.finish()
    }
}

fn execute_bytes_max(executor: &Executor) -> usize {
    let limits = &executor.state().config.limits;
    (limits.code_bytes_max + limits.extras_bytes_max) * JSON_BYTES_PER_BYTE + FRAME_BYTES
}

fn execute(executor: &Executor, bytes: &[u8]) -> Result<Response<ResponseBody>, RequestError> {
    let started = executor.execute(parse::execute(bytes)?)?;
    Ok(json(&started))
}

fn reserve(executor: &Executor, bytes: &[u8]) -> Result<Response<ResponseBody>, RequestError> {
    let reserved = executor.reserve(&parse::reserve(bytes)?)?;
    Ok(json(&reserved))
}

async fn execution(
    executor: &Executor,
    parts: &Parts,
    id: &str,
) -> Result<Response<ResponseBody>, RequestError> {
    let key: ExecutionKey = percent_decoded(id).parse()?;
    if parts.method == Method::DELETE {
        return Ok(json(&executor.cancel(&key)));
    }
    let query = parse::execution_query(parts.uri.query())?;
    match executor.follow(&key, &query).await {
        Some(view) => Ok(json(&view)),
        None => Err(RequestError::UnknownExecution(key)),
    }
}

fn progress(
    executor: &Executor,
    key: ExecutionKey,
    bytes: &[u8],
) -> Result<Response<ResponseBody>, RequestError> {
    match executor.report_progress(&key, &parse_line(bytes)?) {
        Ok(accepted) => Ok(json(&accepted)),
        Err(ProgressRefused::Unknown) => Err(RequestError::UnknownExecution(key)),
        Err(ProgressRefused::Ended) => Err(RequestError::ExecutionEnded(key)),
    }
}

fn ready(executor: &Executor) -> Response<ResponseBody> {
    let capacity = executor.capacity();
    let status = if capacity.draining { "draining" } else { "ready" };
    // A full executor is ready: its refusals carry a Retry-After.
    let available = capacity.available_slots;
    let body = serde_json::json!({ "status": status, "available_slots": available });
    response::health(!capacity.draining, &body)
}

/// Reads the whole body, within bounds of size and time.
async fn read<B: Body<Data = Bytes>>(
    parts: &Parts,
    mut body: Pin<&mut B>,
    bytes_max: usize,
) -> Result<Bytes, RequestError> {
    let too_large = RequestError::TooLarge { bytes_max };
    let declared = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    // A client that expects 100 Continue has not sent its body yet.
    let unsent = parts.headers.contains_key(header::EXPECT);
    if declared > DISCARDED_BYTES_MAX || (declared > bytes_max && unsent) {
        return Err(too_large);
    }
    let whole = async {
        let (mut whole, mut seen) = (BytesMut::new(), 0);
        while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            let frame = frame.map_err(|_| RequestError::Stalled)?;
            let Some(data) = frame.data_ref() else { continue };
            seen += data.len();
            if seen > DISCARDED_BYTES_MAX {
                break;
            }
            match declared.max(seen) > bytes_max {
                true => whole.clear(),
                false => whole.extend_from_slice(data),
            }
        }
        if seen > bytes_max { Err(too_large) } else { Ok(whole.freeze()) }
    };
    timeout(BODY_TIME_MAX, whole).await.unwrap_or(Err(RequestError::Stalled))
}

// === impl Route ===

impl<'a> Route<'a> {
    fn of(path: &'a str) -> Option<Self> {
        Some(match path {
            "/capacity" => Self::Capacity,
            "/execute" => Self::Execute,
            "/reserve" => Self::Reserve,
            "/health/live" => Self::Live,
            "/health/ready" => Self::Ready,
            "/metrics" => Self::Metrics,
            _ => {
                let id = path.strip_prefix("/executions/")?;
                match id.split_once('/') {
                    None => Self::Execution(id),
                    Some((id, "progress")) => Self::Progress(id),
                    Some(_) => return None,
                }
            }
        })
    }

    /// Checks the method and the origin. A web page of another origin may read, but not run anything.
    fn check(&self, parts: &Parts) -> Result<(), RequestError> {
        let (allowed, allow): (&[Method], _) = match self {
            Self::Execute | Self::Reserve | Self::Progress(_) => (&[Method::POST], "POST"),
            Self::Execution(_) => {
                (&[Method::GET, Method::HEAD, Method::DELETE], "GET, HEAD, DELETE")
            }
            _ => (&[Method::GET, Method::HEAD], "GET, HEAD"),
        };
        if !allowed.contains(&parts.method) {
            return Err(RequestError::Method { allow });
        }
        let read_only = matches!(parts.method, Method::GET | Method::HEAD);
        if !read_only && is_cross_origin(parts) { Err(RequestError::CrossOrigin) } else { Ok(()) }
    }
}
