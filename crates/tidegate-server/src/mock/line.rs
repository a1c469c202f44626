use super::body::MockBody;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tokio::sync::watch;

/// How the mock can't be reached at present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outage {
    /// Nobody listens.
    pub(super) dead: bool,
    /// What comes is taken, and nothing goes out.
    pub(super) cut: bool,
}

/// What a connection and its requests know of the network between them and their client.
#[derive(Debug)]
pub(super) struct Line {
    outage: watch::Receiver<Outage>,
    /// Something was held back, so the connection ends with the cut.
    broken: AtomicBool,
    /// The answer to who asked for the mock's death is still to be sent.
    last_words: AtomicBool,
}

/// A body that goes out over a line; over none it is never held back.
pub(super) struct LineBody {
    pub(super) line: Option<Arc<Line>>,
    pub(super) body: MockBody,
}

// === impl Line ===

impl Line {
    pub(super) fn new(outage: watch::Receiver<Outage>) -> Self {
        Self { outage, broken: AtomicBool::new(false), last_words: AtomicBool::new(false) }
    }

    /// Lets pass whatever comes while the line is whole. What comes while it is cut never passes: it ends with the
    /// connection.
    pub(super) async fn pass(&self) {
        if self.holds_back() {
            pending::<()>().await;
        }
    }

    /// Waits for the end of a cut that held something back.
    pub(super) async fn broken(&self) {
        let mut outage = self.outage.clone();
        while outage.changed().await.is_ok() {
            if !outage.borrow_and_update().cut && self.broken.load(Ordering::Relaxed) {
                return;
            }
        }
        // The mock itself has ended, and its connections with it.
        pending().await
    }

    /// Waits for the mock's death.
    pub(super) async fn dead(&self) {
        let mut outage = self.outage.clone();
        if outage.wait_for(|outage| outage.dead).await.is_err() {
            pending::<()>().await;
        }
    }

    /// Lets the line answer once more after the mock's death, or not.
    pub(super) fn keep_for_last_words(&self, keep: bool) {
        self.last_words.store(keep, Ordering::Relaxed);
    }

    pub(super) fn has_last_words(&self) -> bool {
        self.last_words.load(Ordering::Relaxed)
    }

    /// Whether the line is cut, which breaks it for whoever asks.
    fn holds_back(&self) -> bool {
        let cut = self.outage.borrow().cut;
        if cut {
            self.broken.store(true, Ordering::Relaxed);
        }
        cut
    }
}

// === impl LineBody ===

impl Body for LineBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        // Nobody has to be woken: the connection ends with the cut.
        if self.line.as_ref().is_some_and(|line| line.holds_back()) {
            return Poll::Pending;
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
