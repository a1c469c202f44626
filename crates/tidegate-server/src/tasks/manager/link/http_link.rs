use super::connector::LinkConnector;
use super::response::{ExecutorResponse, PollResponse};
use super::target::HttpTarget;
use crate::http::client::bearer;
use crate::tasks::execution::{
    CapacityReport, ExecuteBody, ExecutionQuery, ExecutionView, ReserveBody, Reserved, Started,
};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::de::DeserializeOwned;
use std::time::Duration;
use tidegate::task::ExecutionKey;
use tokio::time::timeout;

/// Longest time to a response, beyond the wait that the request asks for.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(5);
/// Largest response: the output of an execution as JSON.
const BYTES_MAX: usize = 64 << 20;
/// Retry advice of a full executor that gives none.
const RETRY_AFTER_DEFAULT: Duration = Duration::from_secs(1);
/// Longest retry advice that is obeyed.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);
/// Idle connections in the pool.
const IDLE_MAX: usize = 64;

/// Link to an executor that speaks the HTTP contract.
pub struct HttpLink {
    base: String,
    /// `Authorization` of its requests, if the executor expects a token.
    authorization: Option<HeaderValue>,
    client: Client<LinkConnector, Full<Bytes>>,
}

struct HttpResponse {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

enum ExchangeError {
    /// No connection: nothing was sent.
    Connect(String),
    /// The request was sent, at least in part.
    AfterSend(String),
}

// === impl HttpLink ===

impl HttpLink {
    /// A link to an executor.
    pub(super) fn new(target: &HttpTarget) -> Self {
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_max_idle_per_host(IDLE_MAX)
            // Below the 5 s after which many servers close idle connections.
            .pool_idle_timeout(Duration::from_secs(4))
            .build(LinkConnector::new(target.tls.clone()));
        let base = target.url.trim_end_matches('/').to_owned();
        Self { base, authorization: target.token.as_ref().and_then(bearer), client }
    }

    pub(super) async fn capacity(&self) -> Result<CapacityReport, String> {
        let response = self.request(Method::GET, "/capacity", Bytes::new(), Duration::ZERO).await;
        let response = response.map_err(ExchangeError::into_text)?;
        match response.status.as_u16() {
            200 => response.json(),
            _ => Err(format!("/capacity responds {}", response.status)),
        }
    }

    pub(super) async fn execute(&self, body: &ExecuteBody) -> ExecutorResponse<u64> {
        self.post("/execute", body, |started: Started| started.fence).await
    }

    pub(super) async fn reserve(&self, body: &ReserveBody) -> ExecutorResponse<String> {
        self.post("/reserve", body, |reserved: Reserved| reserved.reservation_id).await
    }

    pub(super) async fn poll(&self, key: &ExecutionKey, query: &ExecutionQuery) -> PollResponse {
        let ExecutionQuery { wait, after, .. } = *query;
        let given = |name, value: Option<u64>| {
            value.map(|value| format!("&{name}={value}")).unwrap_or_default()
        };
        let (fence, progress) = (given("fence", query.fence), given("progress", query.progress));
        let wait_ms = wait.as_millis();
        let path = format!("/executions/{key}?wait_ms={wait_ms}&after={after}{progress}{fence}");
        match self.request(Method::GET, &path, Bytes::new(), wait).await {
            Ok(response) => match response.status.as_u16() {
                200 => match response.json::<ExecutionView>() {
                    Ok(view) => PollResponse::View(Box::new(view)),
                    Err(error) => PollResponse::NoResponse(error),
                },
                404 => PollResponse::NotFound,
                _ => PollResponse::NoResponse(format!("/executions responds {}", response.status)),
            },
            Err(error) => PollResponse::NoResponse(error.into_text()),
        }
    }

    pub(super) async fn cancel(&self, key: &ExecutionKey) -> bool {
        let path = format!("/executions/{key}");
        let response = self.request(Method::DELETE, &path, Bytes::new(), Duration::ZERO).await;
        response.is_ok_and(|response| response.status.is_success())
    }

    async fn post<B: serde::Serialize, A: DeserializeOwned, T>(
        &self,
        path: &str,
        body: &B,
        accepted: impl FnOnce(A) -> T,
    ) -> ExecutorResponse<T> {
        let Ok(body) = serde_json::to_vec(body) else {
            return ExecutorResponse::Rejected("it can't be written as JSON".to_owned());
        };
        let response = match self.request(Method::POST, path, body.into(), Duration::ZERO).await {
            Ok(response) => response,
            Err(ExchangeError::Connect(_)) => return ExecutorResponse::Unreachable,
            Err(ExchangeError::AfterSend(why)) => return ExecutorResponse::Unknown(why),
        };
        match response.status.as_u16() {
            200..=202 => match response.json() {
                Ok(json) => ExecutorResponse::Accepted(accepted(json)),
                Err(error) => ExecutorResponse::Unknown(error),
            },
            429 | 503 => ExecutorResponse::Full { retry_after: response.retry_after() },
            410 => ExecutorResponse::Gone,
            409 if response.reason() == Some("cancelled".to_owned()) => ExecutorResponse::Gone,
            400 | 409 | 413 | 422 => ExecutorResponse::Rejected(response.detail()),
            // Of the other refusals none is about the task: they come from a proxy, or no executor is there.
            408 => ExecutorResponse::Unknown(format!("{path} responds 408")),
            400..=499 => ExecutorResponse::Unreachable,
            _ => ExecutorResponse::Unknown(format!("{path} responds {}", response.status)),
        }
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        wait: Duration,
    ) -> Result<HttpResponse, ExchangeError> {
        let unsent = |error: &dyn std::fmt::Display| ExchangeError::Connect(error.to_string());
        let uri: Uri = format!("{}{path}", self.base).parse().map_err(|e| unsent(&e))?;
        let request = Request::builder().method(method).uri(uri);
        let request = request.header(CONTENT_TYPE, "application/json").body(Full::new(body));
        let mut request = request.map_err(|error| unsent(&error))?;
        if let Some(token) = &self.authorization {
            request.headers_mut().insert(AUTHORIZATION, token.clone());
        }
        let exchange = async {
            let response = self.client.request(request).await.map_err(|error| {
                let text = root_cause(&error);
                match error.is_connect() {
                    true => ExchangeError::Connect(text),
                    false => ExchangeError::AfterSend(text),
                }
            })?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, BYTES_MAX).collect().await;
            let body =
                body.map_err(|error| ExchangeError::AfterSend(error.to_string()))?.to_bytes();
            Ok(HttpResponse { status: parts.status, headers: parts.headers, body })
        };
        let elapsed = || Err(ExchangeError::AfterSend("no response in time".to_owned()));
        timeout(wait + RESPONSE_TIMEOUT, exchange).await.unwrap_or_else(|_| elapsed())
    }
}

// === impl HttpResponse ===

impl HttpResponse {
    fn json<T: DeserializeOwned>(&self) -> Result<T, String> {
        serde_json::from_slice(&self.body).map_err(|error| format!("invalid response: {error}"))
    }

    /// The executor's error message: `detail` as FastAPI has it, or the text itself.
    fn detail(&self) -> String {
        let json: Option<serde_json::Value> = serde_json::from_slice(&self.body).ok();
        let detail = json.as_ref().and_then(|json| json.get("detail")?.as_str());
        let text = detail.map_or_else(|| String::from_utf8_lossy(&self.body), Into::into);
        let short: String = text.chars().take(512).collect();
        format!("the executor responds {}: {short}", self.status)
    }

    fn reason(&self) -> Option<String> {
        let json: serde_json::Value = serde_json::from_slice(&self.body).ok()?;
        json.get("error")?.get("reason")?.as_str().map(str::to_owned)
    }

    fn retry_after(&self) -> Duration {
        let json: Option<serde_json::Value> = serde_json::from_slice(&self.body).ok();
        let exact = json.and_then(|json| json.get("error")?.get("retry_after_ms")?.as_u64());
        let number = |name: HeaderName| -> Option<u64> {
            self.headers.get(name)?.to_str().ok()?.trim().parse().ok()
        };
        let exact = exact.or_else(|| number(HeaderName::from_static("retry-after-ms")));
        let seconds = || number(RETRY_AFTER).map(Duration::from_secs);
        let advice = exact.map(Duration::from_millis).or_else(seconds);
        advice.unwrap_or(RETRY_AFTER_DEFAULT).min(RETRY_AFTER_MAX)
    }
}

// === impl ExchangeError ===

impl ExchangeError {
    fn into_text(self) -> String {
        match self {
            Self::Connect(text) | Self::AfterSend(text) => text,
        }
    }
}

/// Text of the last error in a chain, which has the cause.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}
