use super::answer::{Problem, done_answer, json_answer, text_answer};
use super::body::MockBody;
use super::completion::{Completion, Stream};
use super::config::MetricsStyle;
use super::engine::{Ask, RankLoad};
use super::faults::FaultChange;
use super::line::{Line, LineBody};
use super::orca::OrcaFormat;
use super::request::{Api, CompletionRequest};
use super::shell::Shell;
use super::work::asked_work;
use super::{metrics, plain};
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body::Body;
use hyper::body::Incoming;
use serde_json::json;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::{sleep, timeout};

const NAME: HeaderName = HeaderName::from_static("x-tidegate-mock");
const RANK: HeaderName = HeaderName::from_static("x-data-parallel-rank");

/// A prompt of a million tokens.
const BODY_BYTES_MAX: usize = 4 << 20;

/// How much of a body that is too large is read and thrown away. A connection that is closed on a client that
/// still writes is reset, and the answer is lost with it.
const DISCARDED_BYTES_MAX: usize = 64 << 20;

/// How long a body may take.
const BODY_TIME_MAX: Duration = Duration::from_secs(30);

/// The version that Prometheus' text format is at.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What a path is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Route {
    Completion(Api),
    Work,
    Models,
    Health,
    Metrics,
    Faults,
    Events,
    Other,
}

/// Answers one request. While the line is cut, only requests about faults are.
pub(super) async fn answer(
    shell: Arc<Shell>,
    peer: IpAddr,
    line: Arc<Line>,
    request: Request<Incoming>,
) -> Response<LineBody> {
    let route = Route::of(request.uri().path(), shell.config.metrics);
    let held_back = (route != Route::Faults).then(|| Arc::clone(&line));
    if let Some(line) = &held_back {
        line.pass().await;
    }
    let answered = dispatch(&shell, peer, &line, route, request).await;
    if let Some(line) = &held_back {
        line.pass().await;
    }
    let mut response = answered.unwrap_or_else(Problem::answer);
    response.headers_mut().extend(shell.name.clone().map(|name| (NAME, name)));
    response.map(|body| LineBody { line: held_back, body })
}

async fn dispatch(
    shell: &Arc<Shell>,
    peer: IpAddr,
    line: &Line,
    route: Route,
    request: Request<Incoming>,
) -> Result<Response<MockBody>, Problem> {
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    route.check(&head.method)?;
    if matches!(route, Route::Completion(_) | Route::Events | Route::Other) {
        go_wrong(shell).await?;
    }
    match route {
        Route::Completion(api) => complete(shell, api, &head.headers, body).await,
        Route::Work => work(shell, head.uri.query(), &head.headers, body).await,
        Route::Models => Ok(models(shell)),
        Route::Health => Ok(plain::healthy()),
        Route::Metrics => Ok(metrics_page(shell)),
        Route::Faults => faults(shell, (peer, line), &head.method, body).await,
        Route::Events => Ok(plain::events()),
        Route::Other => {
            Ok(plain::work(&shell.config.name, &head.method, path, head.uri.query()).await)
        }
    }
}

/// Does what the faults say.
async fn go_wrong(shell: &Shell) -> Result<(), Problem> {
    let added = Duration::from_millis(shell.faults().added_latency_ms);
    if !added.is_zero() {
        sleep(added).await;
    }
    if shell.fails_now() { Err(Problem::Injected) } else { Ok(()) }
}

/// Takes a place for as long as the request says. The body is read away first, whatever comes of it: an answer
/// before its end would cost the connection.
async fn work(
    shell: &Shell,
    query: Option<&str>,
    headers: &HeaderMap,
    body: Incoming,
) -> Result<Response<MockBody>, Problem> {
    discard(body).await?;
    let ask = asked_work(query)?;
    go_wrong(shell).await?;
    shell.bench.work(ask).await?;
    let mut response = done_answer();
    tell_load(shell, 0, headers, &mut response);
    Ok(response)
}

async fn complete(
    shell: &Arc<Shell>,
    api: Api,
    headers: &HeaderMap,
    body: Incoming,
) -> Result<Response<MockBody>, Problem> {
    let rank = asked_rank(headers)?;
    let body = read(body).await?;
    let request = CompletionRequest::parse(api, &body, &shell.config.models)?;
    let ask = Ask { prompt_tokens: request.prompt_tokens, max_tokens: request.max_tokens, rank };
    let ticket = shell.submit(ask)?;
    let rank = ticket.accepted.rank;
    let mut completion = Completion::new(&request, ticket, unix_time_s());
    let mut response = if request.stream {
        let mut response = Response::new(MockBody::completion(Stream::new(completion)));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        response
    } else {
        completion.ticket.finished().await;
        json_answer(StatusCode::OK, &completion.whole())
    };
    tell_load(shell, rank, headers, &mut response);
    Ok(response)
}

/// Puts the load of a rank into the headers of an answer, when that was asked for.
fn tell_load(shell: &Shell, rank: usize, asked: &HeaderMap, response: &mut Response<MockBody>) {
    if let Some(format) = OrcaFormat::asked(asked) {
        let loads = shell.reported_loads();
        let load = loads.get(rank).copied().unwrap_or_default();
        format.tell(&load, response.headers_mut());
    }
}

fn asked_rank(headers: &HeaderMap) -> Result<Option<usize>, Problem> {
    let Some(value) = headers.get(RANK) else { return Ok(None) };
    let rank = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    let wrong = || {
        Problem::invalid(
            Some("X-data-parallel-rank"),
            "A rank is a whole number from 0.".to_owned(),
        )
    };
    rank.ok_or_else(wrong).map(Some)
}

fn models(shell: &Shell) -> Response<MockBody> {
    let context = shell.config.engine.context_tokens();
    let model = |name: &String| {
        json!({
            "id": name,
            "object": "model",
            "created": 0,
            "owned_by": "tidegate-mock",
            "max_model_len": context,
        })
    };
    let data: Vec<_> = shell.config.models.iter().map(model).collect();
    json_answer(StatusCode::OK, &json!({"object": "list", "data": data}))
}

fn metrics_page(shell: &Shell) -> Response<MockBody> {
    let model = shell.config.models.first().map_or("", String::as_str);
    let loads: Vec<RankLoad> = shell.reported_loads();
    match metrics::page(shell.config.metrics, model, &loads) {
        Some(page) => text_answer(StatusCode::OK, METRICS_TYPE, page),
        None => Problem::NotFound { message: "This mock has no metrics." }.answer(),
    }
}

async fn faults(
    shell: &Shell,
    (peer, line): (IpAddr, &Line),
    method: &Method,
    body: Incoming,
) -> Result<Response<MockBody>, Problem> {
    if !shell.config.faults {
        let message = "Faults are off: start the mock with --faults.";
        return Err(Problem::NotFound { message });
    }
    if !peer.to_canonical().is_loopback() {
        return Err(Problem::Forbidden);
    }
    let changed = match *method {
        Method::POST => {
            let change = FaultChange::parse(&read(body).await?);
            // If it dies of this, it is still answered.
            line.keep_for_last_words(true);
            let changed = change.and_then(|change| shell.change_faults(Some(change)));
            line.keep_for_last_words(changed.as_ref().is_ok_and(|faults| faults.dead));
            changed
        }
        Method::DELETE => shell.change_faults(None),
        _ => Ok(shell.faults()),
    };
    let faults = changed.map_err(|error| Problem::invalid(None, error))?;
    if faults.dead {
        shell.until_dead().await;
    }
    Ok(json_answer(StatusCode::OK, &json!(faults)))
}

/// The whole body, within bounds of size and time.
async fn read(body: Incoming) -> Result<Bytes, Problem> {
    timeout(BODY_TIME_MAX, read_all(body)).await.unwrap_or(Err(Problem::Stalled))
}

async fn read_all(mut body: Incoming) -> Result<Bytes, Problem> {
    let too_large = Problem::TooLarge { limit_bytes: BODY_BYTES_MAX };
    if body.size_hint().lower() > DISCARDED_BYTES_MAX as u64 {
        return Err(too_large);
    }
    let (mut whole, mut seen_bytes) = (Vec::new(), 0);
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        // Whoever broke off does not read the answer.
        let frame = frame.map_err(|_| Problem::Stalled)?;
        let data = frame.data_ref().map_or(&[][..], |data| data);
        seen_bytes += data.len();
        if seen_bytes <= BODY_BYTES_MAX {
            whole.extend_from_slice(data);
        } else if seen_bytes <= DISCARDED_BYTES_MAX {
            whole = Vec::new();
        } else {
            return Err(too_large);
        }
    }
    if seen_bytes > BODY_BYTES_MAX { Err(too_large) } else { Ok(Bytes::from(whole)) }
}

/// Reads a body away, within bounds of size and time.
async fn discard(mut body: Incoming) -> Result<(), Problem> {
    if body.is_end_stream() {
        return Ok(());
    }
    let discarding = async {
        let mut seen_bytes = 0;
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            let frame = frame.map_err(|_| Problem::Stalled)?;
            seen_bytes += frame.data_ref().map_or(0, Bytes::len);
            if seen_bytes > DISCARDED_BYTES_MAX {
                return Err(Problem::TooLarge { limit_bytes: DISCARDED_BYTES_MAX });
            }
        }
        Ok(())
    };
    timeout(BODY_TIME_MAX, discarding).await.unwrap_or(Err(Problem::Stalled))
}

fn unix_time_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

// === impl Route ===

impl Route {
    fn of(path: &str, metrics: MetricsStyle) -> Self {
        match path {
            "/v1/chat/completions" => Self::Completion(Api::Chat),
            "/v1/completions" => Self::Completion(Api::Text),
            "/work" => Self::Work,
            "/v1/models" => Self::Models,
            "/health" => Self::Health,
            "/metrics" => Self::Metrics,
            "/prometheus/metrics" if metrics == MetricsStyle::Trtllm => Self::Metrics,
            "/mock/fault" => Self::Faults,
            "/events" => Self::Events,
            _ => Self::Other,
        }
    }

    fn check(self, method: &Method) -> Result<(), Problem> {
        let (allowed, allow): (&[Method], _) = match self {
            Self::Completion(_) => (&[Method::POST], "POST"),
            Self::Work => (&[Method::GET, Method::POST], "GET, POST"),
            Self::Models | Self::Health | Self::Metrics => {
                (&[Method::GET, Method::HEAD], "GET, HEAD")
            }
            Self::Faults => (&[Method::GET, Method::POST, Method::DELETE], "GET, POST, DELETE"),
            Self::Events | Self::Other => return Ok(()),
        };
        if allowed.contains(method) { Ok(()) } else { Err(Problem::Method { allow }) }
    }
}
