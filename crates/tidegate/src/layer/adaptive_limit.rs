use super::guard::Guard;
use super::shared_limit::{LimitRefusal, SharedLimit};
use super::{AdmissionFuture, AdmittedBody};
use crate::admission::RetryBounds;
use crate::limit::{LimitConfig, LimitSnapshot};
use http::{Request, Response, StatusCode};
use std::sync::Arc;
use std::task::{Context, Poll};
use tower_layer::Layer;
use tower_service::Service;

/// Holds an HTTP service to a concurrency limit that finds itself.
///
/// No number is configured: the limit rises while throughput follows it, and falls when the service refuses, fails
/// or only becomes slower. See [`limit`](crate::limit) for the law.
///
/// Beyond the limit a request gets 503 with an empty body, `retry-after` (seconds) and `retry-after-ms`, from the
/// measured rate at which requests end. The extensions of that response hold the [`LimitSnapshot`] of the refusal:
/// an outer layer finds refusals by it, and may replace them.
///
/// A layer, its clones and all their services share one limit. Requests drive it as they start and end; it needs
/// no runtime and no timer.
///
/// ```
/// use bytes::Bytes;
/// use http::{Request, Response, StatusCode, header};
/// use http_body_util::{BodyExt, Full};
/// use std::convert::Infallible;
/// use tidegate::layer::AdaptiveLimitLayer;
/// use tidegate::limit::LimitConfig;
/// use tower::{Layer, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let layer = AdaptiveLimitLayer::new(LimitConfig { start: 1, ..LimitConfig::default() });
/// let service = layer.layer(service_fn(async |_request: Request<()>| {
///     Ok::<_, Infallible>(Response::new(Full::new(Bytes::from("done"))))
/// }));
///
/// let first = service.clone().oneshot(Request::new(())).await.expect("infallible");
/// let second = service.clone().oneshot(Request::new(())).await.expect("infallible");
/// assert_eq!(first.status(), StatusCode::OK);
/// assert_eq!(second.status(), StatusCode::SERVICE_UNAVAILABLE, "the first has not been read yet");
/// assert!(second.headers().contains_key(header::RETRY_AFTER));
///
/// let answer = first.into_body().collect().await.expect("infallible").to_bytes();
/// assert_eq!(answer, "done");
/// assert_eq!(layer.snapshot().in_flight, 0);
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct AdaptiveLimitLayer {
    shared: Arc<SharedLimit>,
}

/// A service behind a limit that finds itself, built by [`AdaptiveLimitLayer`].
///
/// The service takes a slot in `call` and never in `poll_ready`: a service that is ready, or cloned, but has no
/// request occupies no slot. The slot is released when the body of the response has ended.
///
/// | event | recorded as |
/// |---|---|
/// | the body ended | success, with its latency |
/// | the response has the status 429, 503 or 529, however its body ends | refused |
/// | the service or the body failed | failed |
/// | the future or the body was dropped before its end: the client left, an outer timeout, a panic | ignored |
///
/// A timeout should be a layer inside this one: its error then counts as a failure. After eight failures in a row
/// only probes reach the service, until it responds.
///
/// A refused request does not reach the inner service. Capacity that the inner service reserved when it became
/// ready stays reserved for the next request through the same clone, or is released when the clone is dropped.
///
/// # Errors
///
/// Those of the inner service. A refusal is not an error but a response.
///
/// # Panics
///
/// Only if the inner service does. The slot is then released.
///
/// # Cancel safety
///
/// Dropping the future, or the body of its response, releases the slot at once.
#[derive(Clone, Debug)]
pub struct AdaptiveLimitService<S> {
    inner: S,
    shared: Arc<SharedLimit>,
}

// === impl AdaptiveLimitLayer ===

impl AdaptiveLimitLayer {
    /// Creates a layer with a limit of its own.
    #[must_use]
    pub fn new(config: LimitConfig) -> Self {
        Self { shared: Arc::new(SharedLimit::new(config, RetryBounds::default())) }
    }

    /// Sets the shortest and the longest Retry-After, also of the layer's clones; by default 50 ms and 30 s.
    #[must_use]
    pub fn retry_bounds(self, bounds: RetryBounds) -> Self {
        self.shared.set_bounds(bounds);
        self
    }

    /// Returns the limit, the requests in flight and the cause of the limit's last change.
    #[must_use]
    pub fn snapshot(&self) -> LimitSnapshot {
        self.shared.snapshot()
    }
}

impl Default for AdaptiveLimitLayer {
    fn default() -> Self {
        Self::new(LimitConfig::default())
    }
}

impl<S> Layer<S> for AdaptiveLimitLayer {
    type Service = AdaptiveLimitService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        AdaptiveLimitService { inner, shared: Arc::clone(&self.shared) }
    }
}

// === impl AdaptiveLimitService ===

impl<S, ReqBody, ResBody> Service<Request<ReqBody>> for AdaptiveLimitService<S>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    ResBody: http_body::Body + Default,
{
    type Response = Response<AdmittedBody<ResBody>>;
    type Error = S::Error;
    type Future = AdmissionFuture<S::Future, ResBody>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        match self.shared.try_start() {
            Ok(slot) => AdmissionFuture::admitted(self.inner.call(request), Guard::Slot(slot)),
            Err(refusal) => AdmissionFuture::refused(unavailable(&refusal)),
        }
    }
}

fn unavailable<B: Default>(refusal: &LimitRefusal) -> Response<B> {
    let mut response = Response::new(B::default());
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    refusal.insert_wait(response.headers_mut());
    response.extensions_mut().insert(refusal.snapshot);
    response
}
