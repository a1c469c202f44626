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
    bytes: AtomicU64,
    /// The time that was spent waiting for the client, up to the last piece that came.
    waited_ms: AtomicU64,
    /// When the wait for the next piece began.
    starved_since_ms: AtomicU64,
    too_slow: AtomicBool,
    ended: AtomicBool,
    starved: AtomicBool,
    broken: AtomicBool,
    gone_out: Notify,
}

/// The least rate of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyRate {
    /// In bytes per second; 0 for none.
    pub min: u64,
    /// The time spent waiting for the client before the rate counts.
    pub grace: Duration,
}

// === impl BodyRate ===

impl BodyRate {
    /// Returns true if a client that has sent `bytes` in the time `waited` for it is too slow.
    pub fn is_missed(self, bytes: u64, waited: Duration) -> bool {
        let due = waited.as_millis().saturating_mul(u128::from(self.min)) / 1000;
        waited > self.grace && u128::from(bytes) < due
    }
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
            bytes: AtomicU64::new(0),
            waited_ms: AtomicU64::new(0),
            starved_since_ms: AtomicU64::new(0),
            too_slow: AtomicBool::new(false),
            ended: AtomicBool::new(false),
            starved: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            gone_out: Notify::new(),
        }
    }

    fn note<E>(&self, polled: &Poll<Option<Result<Frame<Bytes>, E>>>, at_end: bool) {
        match polled {
            Poll::Pending => {
                if !self.starved.swap(true, Ordering::Relaxed) {
                    self.starved_since_ms.store(self.elapsed_ms(), Ordering::Relaxed);
                }
            }
            Poll::Ready(frame) => {
                let now_ms = self.elapsed_ms();
                self.progress_ms.store(now_ms, Ordering::Relaxed);
                if self.starved.swap(false, Ordering::Relaxed) {
                    let since_ms = self.starved_since_ms.load(Ordering::Relaxed);
                    self.waited_ms.fetch_add(now_ms.saturating_sub(since_ms), Ordering::Relaxed);
                }
                if let Some(Ok(frame)) = frame
                    && let Some(data) = frame.data_ref()
                {
                    self.bytes.fetch_add(data.len() as u64, Ordering::Relaxed);
                }
                match frame {
                    Some(Err(_)) => self.broken.store(true, Ordering::Relaxed),
                    None => self.end(),
                    Some(Ok(_)) if at_end => self.end(),
                    Some(Ok(_)) => {}
                }
            }
        }
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
        self.gone_out.notify_one();
    }

    /// Ends the upload of a client that sends too slowly, for its waiter. Only the time in which the next piece
    /// was waited for counts: a server that takes no more is not the client's fault.
    pub fn judge(&self, rate: BodyRate) {
        if !self.waits_for_client() {
            return;
        }
        let since_ms = self.starved_since_ms.load(Ordering::Relaxed);
        let waits_ms = self.elapsed_ms().saturating_sub(since_ms);
        let waited_ms = self.waited_ms.load(Ordering::Relaxed).saturating_add(waits_ms);
        let waited = Duration::from_millis(waited_ms);
        if rate.is_missed(self.bytes.load(Ordering::Relaxed), waited) {
            self.too_slow.store(true, Ordering::Relaxed);
            self.gone_out.notify_one();
        }
    }

    /// Returns true if the client sends too slowly.
    pub fn is_too_slow(&self) -> bool {
        self.too_slow.load(Ordering::Relaxed)
    }

    /// Waits until the whole request went out, or until its client was found too slow. For one waiter.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_counts_after_the_grace_and_over_all_the_time_waited() {
        let rate = BodyRate { min: 240, grace: Duration::from_secs(10) };
        let missed = |bytes, s| rate.is_missed(bytes, Duration::from_secs(s));
        assert!(!missed(0, 10), "the grace");
        assert!(missed(2_639, 11) && !missed(2_640, 11));
        assert!(!missed(1 << 20, 3_600), "a client that was fast enough may pause");
        assert!(!BodyRate { min: 0, ..rate }.is_missed(0, Duration::from_secs(3_600)), "off");
    }
}
