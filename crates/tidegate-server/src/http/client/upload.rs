use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The body of a request on its way to a server, frame by frame and never held whole.
pub struct UploadBody {
    /// Frames that were read ahead, and go first. Boxed, because most have none and all are moved a lot.
    ahead: Option<Box<Ahead>>,
    inner: Option<Incoming>,
    watch: Option<Arc<UploadWatch>>,
}

/// Frames of a body that were read before it was sent.
struct Ahead(VecDeque<Frame<Bytes>>);

/// The progress of an upload, for the waiter on its response: a response is late only once the request is
/// complete, and a connection is free again only when both sides are done.
#[derive(Debug)]
pub struct UploadWatch {
    start: Instant,
    progress_ms: AtomicU64,
    ended: AtomicBool,
    starved: AtomicBool,
    broken: AtomicBool,
    gone_out: Notify,
}

// === impl UploadBody ===

impl UploadBody {
    /// A body of which this was read; there is nothing to watch in an empty one.
    pub fn new(ahead: VecDeque<Frame<Bytes>>, inner: Incoming) -> (Self, Option<Arc<UploadWatch>>) {
        if inner.is_end_stream() && ahead.is_empty() {
            return (Self::empty(), None);
        }
        let watch = Arc::new(UploadWatch::new());
        let ahead = (!ahead.is_empty()).then(|| Box::new(Ahead(ahead)));
        (Self { ahead, inner: Some(inner), watch: Some(Arc::clone(&watch)) }, Some(watch))
    }

    /// A body that is here already.
    #[must_use]
    pub fn of_pieces(pieces: Vec<Bytes>, watch: Option<Arc<UploadWatch>>) -> Self {
        let ahead: VecDeque<_> = pieces.into_iter().map(Frame::data).collect();
        let ahead = (!ahead.is_empty()).then(|| Box::new(Ahead(ahead)));
        Self { ahead, inner: None, watch }
    }

    /// A body without content.
    #[must_use]
    pub fn empty() -> Self {
        Self { ahead: None, inner: None, watch: None }
    }
}

impl Body for UploadBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if let Some(frame) = self.ahead.as_mut().and_then(|ahead| ahead.0.pop_front()) {
            let polled = Poll::Ready(Some(Ok(frame)));
            if let Some(watch) = &self.watch {
                watch.note(&polled, self.is_end_stream());
            }
            return polled;
        }
        let Some(inner) = &mut self.inner else { return Poll::Ready(None) };
        let polled = Pin::new(&mut *inner).poll_frame(cx);
        let at_end = inner.is_end_stream();
        if let Some(watch) = &self.watch {
            watch.note(&polled, at_end);
        }
        Poll::Ready(ready!(polled))
    }

    fn is_end_stream(&self) -> bool {
        self.ahead.as_ref().is_none_or(|ahead| ahead.0.is_empty())
            && self.inner.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let left = self.inner.as_ref().map_or(SizeHint::with_exact(0), Body::size_hint);
        match &self.ahead {
            None => left,
            Some(ahead) => {
                let bytes =
                    ahead.0.iter().filter_map(Frame::data_ref).map(|data| data.len() as u64);
                plus(left, bytes.sum())
            }
        }
    }
}

// === impl UploadWatch ===

impl UploadWatch {
    fn new() -> Self {
        Self {
            start: Instant::now(),
            progress_ms: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            starved: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            gone_out: Notify::new(),
        }
    }

    fn note<T, E>(&self, polled: &Poll<Option<Result<T, E>>>, at_end: bool) {
        match polled {
            Poll::Pending => self.starved.store(true, Ordering::Relaxed),
            Poll::Ready(frame) => {
                self.starved.store(false, Ordering::Relaxed);
                let elapsed_ms =
                    u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
                self.progress_ms.store(elapsed_ms, Ordering::Relaxed);
                match frame {
                    Some(Err(_)) => self.broken.store(true, Ordering::Relaxed),
                    None => self.end(),
                    Some(Ok(_)) if at_end => self.end(),
                    Some(Ok(_)) => {}
                }
            }
        }
    }

    fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        self.gone_out.notify_one();
    }

    /// Waits until the whole request went out. For one waiter.
    pub async fn gone_out(&self) {
        if !self.has_ended() {
            self.gone_out.notified().await;
        }
    }

    /// When the last piece of the request went out.
    pub fn last_progress(&self) -> Instant {
        self.start + Duration::from_millis(self.progress_ms.load(Ordering::Relaxed))
    }

    /// Returns true if the whole request was sent.
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// Returns true if the request broke off on the client's side.
    pub fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Relaxed)
    }

    /// Returns true if the upload waits for the client to send more.
    pub fn waits_for_client(&self) -> bool {
        !self.has_ended() && self.starved.load(Ordering::Relaxed)
    }
}

/// A hint for the rest of a body with this many bytes in front of it.
pub(crate) fn plus(left: SizeHint, ahead: u64) -> SizeHint {
    let mut whole = SizeHint::new();
    whole.set_lower(left.lower().saturating_add(ahead));
    if let Some(upper) = left.upper() {
        whole.set_upper(upper.saturating_add(ahead));
    }
    whole
}
