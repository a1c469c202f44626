use super::{AdmissionFuture, AdmittedBody};
use crate::{InFlightTracker, MessagePriority, Refusal};
use http::{Request, Response};
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower_layer::Layer;
use tower_service::Service;

/// Puts admission by priority in front of an HTTP service.
///
/// `classify` gives each request its priority from its head; `refuse` makes the answer to a request that was
/// not admitted. Both run on the path of every request and should do little. This crate knows no status code:
/// the closure picks it.
///
/// Layers that share a tracker share its limits. See the [module](super) for an example.
#[derive(Clone)]
pub struct AdmissionLayer<C, R> {
    tracker: Arc<InFlightTracker>,
    classify: C,
    refuse: R,
}

/// A service behind admission, as [`AdmissionLayer`] makes it.
///
/// It decides in `call` and never in `poll_ready`: a service that is ready, or cloned, but has no request
/// holds no place. Idle connections therefore cost nobody anything.
///
/// A refusal does not reach the inner service. What that reserved when it became ready stays reserved for the
/// next request through the same clone, or is given back when the clone is dropped.
///
/// # Errors
///
/// Those of the inner service. A refusal is not an error but a response.
///
/// # Panics
///
/// Only if a closure or the inner service does. A place that was taken is given back.
///
/// # Cancel safety
///
/// Dropping the future, or the body of its response, gives the place back at once.
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
        Self { tracker, classify, refuse }
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
        let priority = (self.admission.classify)(&request);
        match self.admission.tracker.try_admit_owned(priority) {
            // Called on the very service that was polled ready: nothing is awaited in between, so no clone
            // has to be left in its place.
            Ok(permit) => AdmissionFuture::admitted(self.inner.call(request), permit),
            Err(refusal) => AdmissionFuture::refused((self.admission.refuse)(refusal)),
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
