use super::guard::Guard;
use super::retry_after::MeasuredRetryAfter;
use super::{AdmissionFuture, AdmittedBody};
use crate::admission::RetryBounds;
use crate::{InFlightTracker, MessagePriority, Refusal};
use http::{Request, Response};
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower_layer::Layer;
use tower_service::Service;

/// Puts admission by priority in front of an HTTP service.
///
/// `classify` gives each request its priority from its head; `refuse` builds the response to a request that is
/// not admitted. Both run on the path of every request and should do little. This crate knows no status code:
/// the closure chooses it. The layer adds the Retry-After, unless the closure has set one.
///
/// Layers that share a tracker share its limits. See the [module](super) for an example.
#[derive(Clone)]
pub struct AdmissionLayer<C, R> {
    tracker: Arc<InFlightTracker>,
    retry_after: Arc<MeasuredRetryAfter>,
    classify: C,
    refuse: R,
}

/// A service behind admission, built by [`AdmissionLayer`].
///
/// The service decides in `call` and never in `poll_ready`: a service that is ready, or cloned, but has no
/// request occupies no slot. Idle connections therefore cost nothing.
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
/// Only if a closure or the inner service does. The permit is then released.
///
/// # Cancel safety
///
/// Dropping the future, or the body of its response, releases the permit at once.
#[derive(Clone)]
pub struct AdmissionService<S, C, R> {
    inner: S,
    admission: AdmissionLayer<C, R>,
}

// === impl AdmissionLayer ===

impl<C, R> AdmissionLayer<C, R> {
    /// A layer that admits through this tracker.
    ///
    /// `classify` is a `Fn(&Request<B>) -> MessagePriority` and `refuse` a `Fn(Refusal) -> Response<B>`. Write
    /// the types of closures' arguments out; the compiler can't infer them from here.
    #[must_use]
    pub fn new(tracker: Arc<InFlightTracker>, classify: C, refuse: R) -> Self {
        let retry_after = Arc::new(MeasuredRetryAfter::new(&tracker, RetryBounds::default()));
        Self { tracker, retry_after, classify, refuse }
    }

    /// Sets the shortest and the longest Retry-After; by default 50 ms and 30 s.
    #[must_use]
    pub fn retry_bounds(self, bounds: RetryBounds) -> Self {
        let retry_after = Arc::new(MeasuredRetryAfter::new(&self.tracker, bounds));
        Self { retry_after, ..self }
    }
}

impl<S, C: Clone, R: Clone> Layer<S> for AdmissionLayer<C, R> {
    type Service = AdmissionService<S, C, R>;

    fn layer(&self, inner: S) -> Self::Service {
        AdmissionService { inner, admission: self.clone() }
    }
}

impl<C, R> fmt::Debug for AdmissionLayer<C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmissionLayer").field("tracker", &self.tracker).finish_non_exhaustive()
    }
}

// === impl AdmissionService ===

impl<S, C, R, ReqBody, ResBody> Service<Request<ReqBody>> for AdmissionService<S, C, R>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    C: Fn(&Request<ReqBody>) -> MessagePriority,
    R: Fn(Refusal) -> Response<ResBody>,
    ResBody: http_body::Body,
{
    type Response = Response<AdmittedBody<ResBody>>;
    type Error = S::Error;
    type Future = AdmissionFuture<S::Future, ResBody>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        let AdmissionLayer { tracker, retry_after, classify, refuse } = &self.admission;
        retry_after.observe(tracker);
        match tracker.try_acquire_owned(classify(&request)) {
            // The service that was polled ready is called before anything is awaited, so it needs no clone.
            Ok(permit) => {
                AdmissionFuture::admitted(self.inner.call(request), Guard::Permit(permit))
            }
            Err(refusal) => {
                let mut response = refuse(refusal);
                retry_after.insert(refusal, response.headers_mut());
                AdmissionFuture::refused(response)
            }
        }
    }
}

impl<S: fmt::Debug, C, R> fmt::Debug for AdmissionService<S, C, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmissionService")
            .field("inner", &self.inner)
            .field("admission", &self.admission)
            .finish()
    }
}
