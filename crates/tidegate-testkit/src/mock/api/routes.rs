use super::body::MockBody;
use super::completion::{Completion, Stream};
use super::network::{NetworkBody, NetworkPath};
use super::orca::OrcaFormat;
use super::plain;
use super::problem::Problem;
use super::request::{Api, CompletionRequest};
use super::response::{done_response, json_response, problem_response, text_response};
use super::work_query::parse_work;
use crate::mock::config::MetricsStyle;
use crate::mock::engine::{RankLoad, SequenceRequest};
use crate::mock::faults::FaultChange;
use crate::mock::metrics;
use crate::mock::state::MockState;
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

/// Limit of a body: a prompt of a million tokens.
const BODY_BYTES_MAX: usize = 4 << 20;

/// Bytes of a body that are read and discarded: closing the connection on a client that still writes would lose
/// the response.
const DISCARDED_BYTES_MAX: usize = 64 << 20;

/// Timeout of a body.
const BODY_TIME_MAX: Duration = Duration::from_secs(30);

/// Content type of Prometheus' text format.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Route of a path.
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

/// Handles one request. While the network is cut, only requests about faults get a response.
pub(in crate::mock) async fn handle(
    state: Arc<MockState>,
    peer: IpAddr,
    network: Arc<NetworkPath>,
    request: Request<Incoming>,
) -> Response<NetworkBody> {
    let route = Route::of(request.uri().path(), state.config.metrics);
    let blockable = (route != Route::Faults).then(|| Arc::clone(&network));
    if let Some(network) = &blockable {
        network.pass().await;
    }
    let result = dispatch(&state, peer, &network, route, request).await;
    if let Some(network) = &blockable {
        network.pass().await;
    }
    let mut response = result.unwrap_or_else(problem_response);
    response.headers_mut().extend(state.name.clone().map(|name| (NAME, name)));
    response.map(|body| NetworkBody { network: blockable, body })
}

async fn dispatch(
    state: &Arc<MockState>,
    peer: IpAddr,
    network: &NetworkPath,
    route: Route,
    request: Request<Incoming>,
) -> Result<Response<MockBody>, Problem> {
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    route.check(&head.method)?;
    if matches!(route, Route::Completion(_) | Route::Events | Route::Other) {
        inject_faults(state).await?;
    }
    match route {
        Route::Completion(api) => complete(state, api, &head.headers, body).await,
        Route::Work => work(state, head.uri.query(), &head.headers, body).await,
        Route::Models => Ok(models(state)),
        Route::Health => Ok(plain::healthy()),
        Route::Metrics => Ok(metrics_page(state)),
        Route::Faults => faults(state, (peer, network), &head.method, body).await,
        Route::Events => Ok(plain::events()),
        Route::Other => {
            Ok(plain::work(&state.config.name, &head.method, path, head.uri.query()).await)
        }
    }
}

/// Applies added latency and failures.
async fn inject_faults(state: &MockState) -> Result<(), Problem> {
    let added = Duration::from_millis(state.faults().added_latency_ms);
    if !added.is_zero() {
        sleep(added).await;
    }
    if state.fails_now() { Err(Problem::Injected) } else { Ok(()) }
}

/// Occupies a slot for the requested time. The body is read first: a response before its end would cost the
/// connection.
async fn work(
    state: &MockState,
    query: Option<&str>,
    headers: &HeaderMap,
    body: Incoming,
) -> Result<Response<MockBody>, Problem> {
    discard(body).await?;
    let work = parse_work(query)?;
    inject_faults(state).await?;
    state.work.run(work).await?;
    let mut response = done_response();
    report_load(state, 0, headers, &mut response);
    Ok(response)
}

async fn complete(
    state: &Arc<MockState>,
    api: Api,
    headers: &HeaderMap,
    body: Incoming,
) -> Result<Response<MockBody>, Problem> {
    let rank = requested_rank(headers)?;
    let body = read(body).await?;
    let request = CompletionRequest::parse(api, &body, &state.config.models)?;
    let sequence = SequenceRequest {
        prompt_tokens: request.prompt_tokens,
        max_tokens: request.max_tokens,
        rank,
    };
    let ticket = state.submit(sequence)?;
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
        json_response(StatusCode::OK, &completion.whole())
    };
    report_load(state, rank, headers, &mut response);
    Ok(response)
}

/// Adds the load of a rank to the response headers if the request asks for it.
fn report_load(
    state: &MockState,
    rank: usize,
    request: &HeaderMap,
    response: &mut Response<MockBody>,
) {
    if let Some(format) = OrcaFormat::requested(request) {
        let loads = state.reported_loads();
        let load = loads.get(rank).copied().unwrap_or_default();
        format.insert(&load, response.headers_mut());
    }
}

fn requested_rank(headers: &HeaderMap) -> Result<Option<usize>, Problem> {
    let Some(value) = headers.get(RANK) else { return Ok(None) };
    let rank = value.to_str().ok().and_then(|text| text.trim().parse().ok());
    let wrong = || {
        Problem::invalid(
            Some("X-data-parallel-rank"),
            "The rank must be a whole number from 0.".to_owned(),
        )
    };
    rank.ok_or_else(wrong).map(Some)
}

fn models(state: &MockState) -> Response<MockBody> {
    let context = state.config.engine.context_tokens();
    let model = |name: &String| {
        json!({
            "id": name,
            "object": "model",
            "created": 0,
            "owned_by": "tidegate-mock",
            "max_model_len": context,
        })
    };
    let data: Vec<_> = state.config.models.iter().map(model).collect();
    json_response(StatusCode::OK, &json!({"object": "list", "data": data}))
}

fn metrics_page(state: &MockState) -> Response<MockBody> {
    let model = state.config.models.first().map_or("", String::as_str);
    let loads: Vec<RankLoad> = state.reported_loads();
    match metrics::page(state.config.metrics, model, &loads) {
        Some(page) => text_response(StatusCode::OK, METRICS_TYPE, page),
        None => problem_response(Problem::NotFound { message: "This mock has no metrics." }),
    }
}

async fn faults(
    state: &MockState,
    (peer, network): (IpAddr, &NetworkPath),
    method: &Method,
    body: Incoming,
) -> Result<Response<MockBody>, Problem> {
    if !state.config.faults {
        let message = "Fault injection is disabled: start the mock with --faults.";
        return Err(Problem::NotFound { message });
    }
    if !peer.to_canonical().is_loopback() {
        return Err(Problem::Forbidden);
    }
    let changed = match *method {
        Method::POST => {
            let change = FaultChange::parse(&read(body).await?);
            // A request that kills the mock still gets a response.
            network.keep_for_final_response(true);
            let changed = change.and_then(|change| state.change_faults(Some(change)));
            network.keep_for_final_response(changed.as_ref().is_ok_and(|faults| faults.dead));
            changed
        }
        Method::DELETE => state.change_faults(None),
        _ => Ok(state.faults()),
    };
    let faults = changed.map_err(|error| Problem::invalid(None, error))?;
    if faults.dead {
        state.until_dead().await;
    }
    Ok(json_response(StatusCode::OK, &json!(faults)))
}

/// Reads the whole body, within limits of size and time.
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
        // The client is gone and does not read the response.
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

/// Reads and discards a body, within limits of size and time.
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
