use super::answer::Problem;
use super::{Executor, metrics, parse};
use crate::control::{
    Exposition, is_cross_origin, json_response, percent_decoded, text, write_process,
};
use crate::proxy::GatewayBody;
use crate::rescue::{Asker, Unread};
use bytes::{Bytes, BytesMut};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, header};
use http_body::Body;
use serde_json::json;
use std::future::poll_fn;
use std::pin::pin;
use std::time::{Duration, SystemTime};
use tidegate::task::ExecutionKey;
use tokio::time::timeout;

/// How long a body may take to come.
const BODY_TIME_MAX: Duration = Duration::from_secs(30);

/// How much of a body that is too large is read and thrown away. A connection that is closed on a client that
/// still writes is reset, and the answer is lost with it.
const DISCARDED_BYTES_MAX: usize = 16 << 20;

/// A character of text takes at most six in JSON, as `\u0000`.
const JSON_BYTES_A_BYTE: usize = 6;

/// For the names, braces and commas around the code.
const FRAME_BYTES: usize = 16 << 10;

/// What a path is for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Route<'a> {
    Capacity,
    Execute,
    Reserve,
    Execution(&'a str),
    Live,
    Ready,
    Metrics,
}

/// Answers one request.
pub(super) async fn answer<B: Body<Data = Bytes>>(
    executor: &Executor,
    started: SystemTime,
    request: Request<B>,
) -> Response<GatewayBody> {
    let asker = Asker::of(&request);
    let (parts, body) = request.into_parts();
    let mut body = pin!(body);
    let answered = match Route::of(parts.uri.path()) {
        None => Err(Problem::UnknownPath),
        Some(route) => match route.check(&parts) {
            Err(problem) => Err(problem),
            Ok(()) => match route {
                Route::Execute => {
                    let read = read(&parts, body.as_mut(), execute_bytes_max(executor)).await;
                    read.and_then(|bytes| execute(executor, &bytes))
                }
                Route::Reserve => {
                    let read = read(&parts, body.as_mut(), FRAME_BYTES).await;
                    read.and_then(|bytes| reserve(executor, &bytes))
                }
                Route::Execution(id) => execution(executor, &parts, id).await,
                Route::Capacity => Ok(json_response(StatusCode::OK, &executor.capacity())),
                Route::Live => Ok(json_response(StatusCode::OK, &json!({ "status": "live" }))),
                Route::Ready => Ok(ready(executor)),
                Route::Metrics => Ok(text(metrics_page(executor, started))),
            },
        },
    };
    let unread = if body.is_end_stream() { Unread::None } else { Unread::Some };
    asker.fit(answered.unwrap_or_else(|problem| problem.answer()), unread)
}

fn execute_bytes_max(executor: &Executor) -> usize {
    let limits = &executor.shared().config.limits;
    (limits.code_bytes_max + limits.extras_bytes_max) * JSON_BYTES_A_BYTE + FRAME_BYTES
}

fn execute(executor: &Executor, bytes: &[u8]) -> Result<Response<GatewayBody>, Problem> {
    let started = executor.execute(parse::execute(bytes)?)?;
    Ok(json_response(StatusCode::OK, &started))
}

fn reserve(executor: &Executor, bytes: &[u8]) -> Result<Response<GatewayBody>, Problem> {
    let reserved = executor.reserve(&parse::reserve(bytes)?)?;
    Ok(json_response(StatusCode::OK, &reserved))
}

async fn execution(
    executor: &Executor,
    parts: &Parts,
    id: &str,
) -> Result<Response<GatewayBody>, Problem> {
    let key: ExecutionKey = percent_decoded(id).parse()?;
    if parts.method == Method::DELETE {
        return Ok(json_response(StatusCode::OK, &executor.cancel(&key)));
    }
    let asked = parse::execution_query(parts.uri.query())?;
    match executor.execution(&key, asked.fence, asked.wait, asked.after).await {
        Some(view) => Ok(json_response(StatusCode::OK, &view)),
        None => Err(Problem::UnknownExecution(key)),
    }
}

fn ready(executor: &Executor) -> Response<GatewayBody> {
    let capacity = executor.capacity();
    let (code, status) = match capacity.draining {
        false => (StatusCode::OK, "ready"),
        true => (StatusCode::SERVICE_UNAVAILABLE, "draining"),
    };
    // Full is ready: whoever asks for a slot is told so, and when to come back.
    let available = capacity.available_slots;
    json_response(code, &json!({ "status": status, "available_slots": available }))
}

fn metrics_page(executor: &Executor, started: SystemTime) -> String {
    let mut out = Exposition::default();
    metrics::write(&mut out, &executor.capacity(), &executor.counts());
    write_process(&mut out, started);
    out.finish()
}

/// The whole body, within bounds of size and time.
async fn read<B: Body<Data = Bytes>>(
    parts: &Parts,
    mut body: std::pin::Pin<&mut B>,
    bytes_max: usize,
) -> Result<Bytes, Problem> {
    let too_large = Problem::TooLarge { bytes_max };
    let declared = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    // Whoever waits to be told to go on has not sent anything that could be lost.
    let waits = parts.headers.contains_key(header::EXPECT);
    if declared > DISCARDED_BYTES_MAX || (declared > bytes_max && waits) {
        return Err(too_large);
    }
    let whole = async {
        let (mut whole, mut seen) = (BytesMut::new(), 0);
        while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            // Whoever broke off does not read the answer.
            let frame = frame.map_err(|_| Problem::Stalled)?;
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
    timeout(BODY_TIME_MAX, whole).await.unwrap_or(Err(Problem::Stalled))
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
                Self::Execution(Some(id).filter(|id| !id.contains('/'))?)
            }
        })
    }

    /// Whether it may be asked so. A page in somebody's browser may read, and must not run anything here.
    fn check(&self, parts: &Parts) -> Result<(), Problem> {
        let (allowed, allow): (&[Method], _) = match self {
            Self::Execute | Self::Reserve => (&[Method::POST], "POST"),
            Self::Execution(_) => {
                (&[Method::GET, Method::HEAD, Method::DELETE], "GET, HEAD, DELETE")
            }
            _ => (&[Method::GET, Method::HEAD], "GET, HEAD"),
        };
        if !allowed.contains(&parts.method) {
            return Err(Problem::Method { allow });
        }
        let reads = matches!(parts.method, Method::GET | Method::HEAD);
        if !reads && is_cross_origin(parts) { Err(Problem::CrossOrigin) } else { Ok(()) }
    }
}
