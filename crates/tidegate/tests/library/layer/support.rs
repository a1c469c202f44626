//! A service and bodies that do what a test says, and a layer with one place for Low.

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use tidegate::admission::OutcomeTotals;
use tidegate::layer::AdmissionLayer;
use tidegate::{InFlightTracker, MessagePriority, PriorityLimits, Refusal, Sharing};

pub type Classify = fn(&Request<()>) -> MessagePriority;
pub type Refuse = fn(Refusal) -> Response<Scripted>;

/// A body that gives these frames, one a poll, and then ends.
#[derive(Debug, Default)]
pub struct Scripted {
    frames: VecDeque<Result<Frame<Bytes>, &'static str>>,
    /// Whether it says so when nothing is left, as bodies of a known size do.
    knows_its_end: bool,
}

// === impl Scripted ===

impl Scripted {
    /// Ends without having said that it would.
    pub fn stream(parts: &[&'static str]) -> Self {
        let frames = parts.iter().map(|part| Ok(Frame::data(Bytes::from_static(part.as_bytes()))));
        Self { frames: frames.collect(), knows_its_end: false }
    }

    /// Says that it has ended as soon as it has.
    pub fn sized(parts: &[&'static str]) -> Self {
        Self { knows_its_end: true, ..Self::stream(parts) }
    }

    pub fn then_trailers(mut self) -> Self {
        self.frames.push_back(Ok(Frame::trailers(HeaderMap::new())));
        self
    }

    pub fn then_error(mut self) -> Self {
        self.frames.push_back(Err("the body broke"));
        self
    }
}

impl Body for Scripted {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        Poll::Ready(self.frames.pop_front())
    }

    fn is_end_stream(&self) -> bool {
        self.knows_its_end && self.frames.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.frames.len() as u64)
    }
}

/// One place for Low, and enough for the others.
pub fn tracker() -> Arc<InFlightTracker> {
    let limits = PriorityLimits::new(10, 5, 3, 1);
    Arc::new(InFlightTracker::new(limits, Sharing::Strict))
}

/// Classifies by path and refuses with 503.
pub fn layer(tracker: &Arc<InFlightTracker>) -> AdmissionLayer<Classify, Refuse> {
    let classify: Classify = |request| {
        let name = request.uri().path().trim_start_matches('/');
        MessagePriority::from_name(name).expect("the path is a priority")
    };
    let refuse: Refuse = |refusal| {
        let mut response = Response::new(Scripted::sized(&[refusal.reason.name()]));
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        response
    };
    AdmissionLayer::new(Arc::clone(tracker), classify, refuse)
}

pub fn request(priority: MessagePriority) -> Request<()> {
    Request::get(format!("/{}", priority.name())).body(()).expect("a valid request")
}

pub fn ok(body: Scripted) -> Result<Response<Scripted>, Infallible> {
    Ok(Response::new(body))
}

pub async fn next_frame<B: Body + Unpin>(body: &mut B) -> Option<Result<Frame<B::Data>, B::Error>> {
    poll_fn(|cx| pin!(&mut *body).poll_frame(cx)).await
}

/// How the permits of Low ended.
pub fn low_ended(tracker: &InFlightTracker) -> OutcomeTotals {
    tracker.stats().finished[MessagePriority::Low.index()]
}
