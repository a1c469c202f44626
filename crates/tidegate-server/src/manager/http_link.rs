use super::link::{Offered, Told};
use crate::worker::{CapacityReport, ExecuteBody, ExecutionView, ReserveBody, Reserved, Started};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde::de::DeserializeOwned;
use std::time::Duration;
use tidegate::task::ExecutionKey;
use tokio::time::timeout;

/// Until a connection stands.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Until an answer is there, beyond what was asked to be waited.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// More than any answer: the output of an execution as JSON.
const BYTES_MAX: usize = 64 << 20;
/// Where an executor is full and does not say when to come back.
const RETRY_AFTER_UNSAID: Duration = Duration::from_secs(1);
/// The longest that an executor is believed.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(60);
/// Connections that are kept open without a use.
const IDLE_MAX: usize = 64;

/// An executor that speaks the contract over HTTP.
pub(super) struct HttpLink {
    base: String,
    client: Client<HttpConnector, Full<Bytes>>,
}

struct Answer {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

enum Failed {
    /// No connection: nothing was sent.
    Connect(String),
    /// Something was, perhaps all.
    After(String),
}

// === impl HttpLink ===

impl HttpLink {
    /// `base` is the executor's URL without a path at its end.
    pub fn new(base: &str) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_max_idle_per_host(IDLE_MAX)
            // Below the 5 s after which many servers close what is idle.
            .pool_idle_timeout(Duration::from_secs(4))
            .build(connector);
        Self { base: base.trim_end_matches('/').to_owned(), client }
    }

    pub async fn capacity(&self) -> Result<CapacityReport, String> {
        let answer = self.ask(Method::GET, "/capacity", Bytes::new(), Duration::ZERO).await;
        let answer = answer.map_err(Failed::into_text)?;
        match answer.status {
            StatusCode::OK => answer.json(),
            status => Err(format!("/capacity answers {status}")),
        }
    }

    pub async fn execute(&self, body: &ExecuteBody) -> Offered<u64> {
        self.offer("/execute", body, |started: Started| started.fence).await
    }

    pub async fn reserve(&self, body: &ReserveBody) -> Offered<String> {
        self.offer("/reserve", body, |reserved: Reserved| reserved.reservation_id).await
    }

    pub async fn follow(
        &self,
        key: &ExecutionKey,
        fence: Option<u64>,
        wait: Duration,
        after: u64,
    ) -> Told {
        let fence = fence.map(|fence| format!("&fence={fence}")).unwrap_or_default();
        let path = format!("/executions/{key}?wait_ms={}&after={after}{fence}", wait.as_millis());
        match self.ask(Method::GET, &path, Bytes::new(), wait).await {
            Ok(answer) if answer.status == StatusCode::OK => match answer.json::<ExecutionView>() {
                Ok(view) => Told::View(Box::new(view)),
                Err(error) => Told::Silence(error),
            },
            Ok(answer) if answer.status == StatusCode::NOT_FOUND => Told::Nothing,
            Ok(answer) => Told::Silence(format!("/executions answers {}", answer.status)),
            Err(failed) => Told::Silence(failed.into_text()),
        }
    }

    pub async fn cancel(&self, key: &ExecutionKey) -> bool {
        let path = format!("/executions/{key}");
        let answer = self.ask(Method::DELETE, &path, Bytes::new(), Duration::ZERO).await;
        answer.is_ok_and(|answer| answer.status.is_success())
    }

    async fn offer<B: serde::Serialize, A: DeserializeOwned, T>(
        &self,
        path: &str,
        body: &B,
        taken: impl FnOnce(A) -> T,
    ) -> Offered<T> {
        let Ok(body) = serde_json::to_vec(body) else {
            return Offered::Never("it can't be written as JSON".to_owned());
        };
        match self.ask(Method::POST, path, body.into(), Duration::ZERO).await {
            Err(Failed::Connect(_)) => Offered::Unreachable,
            Err(Failed::After(why)) => Offered::Unknown(why),
            Ok(answer) => match answer.status {
                StatusCode::OK | StatusCode::CREATED | StatusCode::ACCEPTED => {
                    match answer.json() {
                        Ok(json) => Offered::Taken(taken(json)),
                        Err(error) => Offered::Unknown(error),
                    }
                }
                StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                    Offered::Full { retry_after: answer.retry_after() }
                }
                StatusCode::GONE => Offered::Gone,
                StatusCode::CONFLICT if answer.reason() == Some("cancelled".to_owned()) => {
                    Offered::Gone
                }
                StatusCode::BAD_REQUEST
                | StatusCode::CONFLICT
                | StatusCode::PAYLOAD_TOO_LARGE
                | StatusCode::UNPROCESSABLE_ENTITY => Offered::Never(answer.detail()),
                // Of the other refusals none is about the task: something stands between, or no executor is there.
                StatusCode::REQUEST_TIMEOUT => Offered::Unknown(format!("{path} answers 408")),
                status if status.is_client_error() => Offered::Unreachable,
                status => Offered::Unknown(format!("{path} answers {status}")),
            },
        }
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        wait: Duration,
    ) -> Result<Answer, Failed> {
        let unsent = |error: &dyn std::fmt::Display| Failed::Connect(error.to_string());
        let uri: Uri = format!("{}{path}", self.base).parse().map_err(|e| unsent(&e))?;
        let request = Request::builder().method(method).uri(uri);
        let request = request.header(CONTENT_TYPE, "application/json").body(Full::new(body));
        let request = request.map_err(|error| unsent(&error))?;
        let exchange = async {
            let response = self.client.request(request).await.map_err(|error| {
                let text = root_cause(&error);
                if error.is_connect() { Failed::Connect(text) } else { Failed::After(text) }
            })?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, BYTES_MAX).collect().await;
            let body = body.map_err(|error| Failed::After(error.to_string()))?.to_bytes();
            Ok(Answer { status: parts.status, headers: parts.headers, body })
        };
        match timeout(wait + ANSWER_TIMEOUT, exchange).await {
            Ok(done) => done,
            Err(_) => Err(Failed::After("no answer in time".to_owned())),
        }
    }
}

// === impl Answer ===

impl Answer {
    fn json<T: DeserializeOwned>(&self) -> Result<T, String> {
        serde_json::from_slice(&self.body).map_err(|error| format!("its answer is wrong: {error}"))
    }

    /// What to do next, as the executor says it: FastAPI's `detail`, or the text itself.
    fn detail(&self) -> String {
        let json: Option<serde_json::Value> = serde_json::from_slice(&self.body).ok();
        let detail = json.as_ref().and_then(|json| json.get("detail")?.as_str());
        let text = detail.map_or_else(|| String::from_utf8_lossy(&self.body), Into::into);
        let short: String = text.chars().take(512).collect();
        format!("the executor answers {}: {short}", self.status)
    }

    fn reason(&self) -> Option<String> {
        let json: serde_json::Value = serde_json::from_slice(&self.body).ok()?;
        json.get("error")?.get("reason")?.as_str().map(str::to_owned)
    }

    fn retry_after(&self) -> Duration {
        let json: Option<serde_json::Value> = serde_json::from_slice(&self.body).ok();
        let exact = json.and_then(|json| json.get("error")?.get("retry_after_ms")?.as_u64());
        let header = self.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let header = header.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
        let said = exact.map(Duration::from_millis).or(header);
        said.unwrap_or(RETRY_AFTER_UNSAID).min(RETRY_AFTER_MAX)
    }
}

// === impl Failed ===

impl Failed {
    fn into_text(self) -> String {
        match self {
            Self::Connect(text) | Self::After(text) => text,
        }
    }
}

/// The last of a chain of errors says what happened; the first only that something did.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut deepest = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}
