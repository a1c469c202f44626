use super::{
    Answered, Failed, Failure, RetryAfter, RetryClient, RetryHeaders, Safety, Stopped, http_date,
};
use http::{HeaderMap, HeaderName, Method, Request, Response, StatusCode, header};
use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tower_service::Service;

const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");
const GRPC_PUSHBACK_MS: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// "The service is overloaded": not registered, and in use by model providers.
const OVERLOADED: u16 = 529;

/// Failure of the last try of an HTTP request.
#[derive(Debug)]
pub enum HttpFailure<R, E> {
    /// The server refused: 429, 503 or 529. Boxed, so that the usual path does not carry its size.
    Refused(Box<Response<R>>),
    /// There was no answer.
    Error(E),
}

/// Reads what an exchange means for trying again: 429, 503 and 529 are refusals of what was not started, with
/// the time that their fields name; every other response is an answer. What an error means is known only to
/// who made it: `classify` says it.
///
/// A server that answers 503 after it has begun breaks this promise. Behind such a one, treat its 503 as an
/// answer.
///
/// # Errors
///
/// A [`Failed`] with the refusal or the error in it.
///
/// ```
/// use http::Response;
/// use tidegate::retry::{Failure, read_answer};
///
/// let refusal = Response::builder().status(503).header("retry-after", "7").body(()).expect("valid");
/// let failed = read_answer(Ok::<_, ()>(refusal), |_| Failure::Lost).expect_err("it was refused");
/// assert_eq!(failed.failure, Failure::Refused);
/// assert!(failed.server.is_some());
/// ```
pub fn read_answer<R, E>(
    exchange: Result<Response<R>, E>,
    classify: impl FnOnce(&E) -> Failure,
) -> Result<Response<R>, Failed<HttpFailure<R, E>>> {
    match exchange {
        Ok(response) if is_refusal(response.status()) => {
            let server = server_said(response.headers(), unix_now());
            let failed = Failed::refused(HttpFailure::Refused(Box::new(response)));
            Err(Failed { server, ..failed })
        }
        Ok(response) => Ok(response),
        Err(error) => Err(Failed::new(classify(&error), HttpFailure::Error(error))),
    }
}

/// Reads the Retry-After of a response, from the field with the finest resolution. `now` is the time since the
/// Unix epoch; it is used for a date only without a `Date` field, because a date refers to the server's clock.
#[must_use]
pub fn server_said(headers: &HeaderMap, now: Duration) -> Option<RetryAfter> {
    let field = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let now = field(header::DATE).and_then(|date| http_date(date, now)).unwrap_or(now);
    // A pushback that is no text is a pushback that is no number.
    let grpc = headers.get(GRPC_PUSHBACK_MS).map(|value| value.to_str().unwrap_or(""));
    let said = RetryHeaders {
        retry_after: field(header::RETRY_AFTER),
        tidegate_ms: field(RETRY_AFTER_MS),
        grpc_pushback_ms: grpc,
    };
    said.most_precise(now)
}

/// Safety of a method by HTTP itself (RFC 9110, 9.2.2). The caller may know better.
#[must_use]
pub fn method_safety(method: &Method) -> Safety {
    if method.is_idempotent() { Safety::Idempotent } else { Safety::Once }
}

fn is_refusal(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS
        || status == StatusCode::SERVICE_UNAVAILABLE
        || status.as_u16() == OVERLOADED
}

/// Zero for a clock that stands before the epoch: then no date can be trusted, and all are far away.
fn unix_now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

// === impl RetryClient ===

impl RetryClient {
    /// Sends a request through a service until it is answered or there is a reason to stop. Each try has a clone
    /// of the service and of the request, so the body should be cheap to clone: bytes, not a stream.
    ///
    /// `classify` says of the service's errors whether the request may have started: [`Failure::Unreachable`]
    /// only where it certainly was not sent, [`Failure::Lost`] when in doubt.
    ///
    /// # Errors
    ///
    /// [`Stopped`], with the last refusal or error. The request is in it when nobody can have started it.
    ///
    /// # Panics
    ///
    /// Outside a tokio runtime with its timers enabled.
    ///
    /// # Cancel safety
    ///
    /// As [`run`](RetryClient::run).
    ///
    /// ```
    /// use http::{Request, Response, StatusCode};
    /// use std::convert::Infallible;
    /// use tidegate::retry::{Failure, GiveUpReason, HttpFailure, RetryClient, Safety};
    /// use tower::service_fn;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let busy = service_fn(async |_request: Request<&'static str>| {
    ///     let refusal = Response::builder().status(503).header("retry-after", "3600").body(());
    ///     Ok::<_, Infallible>(refusal.expect("valid"))
    /// });
    /// let request = Request::new("work");
    /// let client = RetryClient::default();
    /// let sent = client.send(&busy, request, Safety::Once, |_| Failure::Lost).await;
    /// let stopped = sent.expect_err("an hour is more than there is");
    /// assert_eq!(stopped.why, GiveUpReason::Deadline);
    /// assert_eq!(stopped.unsent.map(Request::into_body), Some("work"));
    /// let Some(HttpFailure::Refused(response)) = stopped.last else { panic!("it was refused") };
    /// assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    /// # }
    /// ```
    pub async fn send<S, B, R>(
        &self,
        service: &S,
        request: Request<B>,
        safety: Safety,
        classify: impl Fn(&S::Error) -> Failure,
    ) -> Result<Answered<Response<R>>, Stopped<Request<B>, HttpFailure<R, S::Error>>>
    where
        S: Service<Request<B>, Response = Response<R>> + Clone,
        B: Clone,
    {
        let classify = &classify;
        self.run(request, safety, |request| {
            let exchange = call(service.clone(), request.clone());
            async move { read_answer(exchange.await, classify) }
        })
        .await
    }
}

async fn call<S: Service<Q>, Q>(mut service: S, request: Q) -> Result<S::Response, S::Error> {
    poll_fn(|cx| service.poll_ready(cx)).await?;
    service.call(request).await
}

// === impl HttpFailure ===

impl<R, E> fmt::Display for HttpFailure<R, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(response) => write!(f, "the server refused with {}", response.status()),
            Self::Error(_) => f.write_str("there was no answer"),
        }
    }
}

impl<R: fmt::Debug, E: Error + 'static> Error for HttpFailure<R, E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Refused(_) => None,
            Self::Error(error) => Some(error),
        }
    }
}
