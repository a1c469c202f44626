use super::body::MockBody;
use crate::mock::faults::Outage;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tokio::sync::watch;

/// Simulated network between a connection and its client.
#[derive(Debug)]
pub(in crate::mock) struct NetworkPath {
    outage: watch::Receiver<Outage>,
    /// A response was blocked, so the connection ends with the cut.
    broken: AtomicBool,
    /// The response to the request that killed the mock is still to be sent.
    final_response: AtomicBool,
}

/// Response body on a network path; never blocked without one.
pub(in crate::mock) struct NetworkBody {
    pub(in crate::mock) network: Option<Arc<NetworkPath>>,
    pub(in crate::mock) body: MockBody,
}

// === impl NetworkPath ===

impl NetworkPath {
    pub(in crate::mock) fn new(outage: watch::Receiver<Outage>) -> Self {
        Self { outage, broken: AtomicBool::new(false), final_response: AtomicBool::new(false) }
    }

    /// Returns at once unless the path is cut; then the caller waits until the connection ends.
    pub(in crate::mock) async fn pass(&self) {
        if self.is_blocked() {
            pending::<()>().await;
        }
    }

    /// Waits for the end of a cut that blocked a response.
    pub(in crate::mock) async fn broken(&self) {
        let mut outage = self.outage.clone();
        while outage.changed().await.is_ok() {
            if !outage.borrow_and_update().cut && self.broken.load(Ordering::Relaxed) {
                return;
            }
        }
        // The mock itself has ended, and its connections with it.
        pending().await
    }

    /// Waits until the mock is dead.
    pub(in crate::mock) async fn dead(&self) {
        let mut outage = self.outage.clone();
        if outage.wait_for(|outage| outage.dead).await.is_err() {
            pending::<()>().await;
        }
    }

    /// Allows one more response after the mock is dead.
    pub(in crate::mock) fn keep_for_final_response(&self, keep: bool) {
        self.final_response.store(keep, Ordering::Relaxed);
    }

    pub(in crate::mock) fn has_final_response(&self) -> bool {
        self.final_response.load(Ordering::Relaxed)
    }

    /// True if the path is cut; the connection then ends with the cut.
    fn is_blocked(&self) -> bool {
        let cut = self.outage.borrow().cut;
        if cut {
            self.broken.store(true, Ordering::Relaxed);
        }
        cut
    }
}

// === impl NetworkBody ===

impl Body for NetworkBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        // No wake-up is needed: the connection ends with the cut.
        if self.network.as_ref().is_some_and(|network| network.is_blocked()) {
            return Poll::Pending;
        }
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
