use super::guard::Guard;
use crate::Outcome;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

pin_project! {
    /// The body of a response, with the permit or the slot of its request.
    ///
    /// The permit ends as soon as the body does, not when the body is dropped: a server may drop it much later.
    /// The body of a refusal has no permit.
    ///
    /// # Errors
    ///
    /// Those of the body inside. An error ends the permit as [`Outcome::Dropped`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the body before its end releases the permit at once, as [`Outcome::Ignored`].
    #[derive(Debug)]
    pub struct AdmittedBody<B> {
        #[pin]
        body: B,
        guard: Option<Guard>,
    }
}

// === impl AdmittedBody ===

impl<B: Body> AdmittedBody<B> {
    pub(super) fn new(body: B, guard: Guard) -> Self {
        let mut guard = Some(guard);
        // A server does not poll a body that says it has ended.
        if body.is_end_stream() {
            end(&mut guard, Outcome::Success);
        }
        Self { body, guard }
    }

    pub(super) fn without_guard(body: B) -> Self {
        Self { body, guard: None }
    }
}

impl<B: Body> Body for AdmittedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let mut this = self.project();
        let frame = ready!(this.body.as_mut().poll_frame(cx));
        match &frame {
            Some(Err(_)) => end(this.guard, Outcome::Dropped),
            None => end(this.guard, Outcome::Success),
            // Nothing follows trailers, and a server need not poll again.
            Some(Ok(frame)) if frame.is_trailers() || this.body.is_end_stream() => {
                end(this.guard, Outcome::Success);
            }
            Some(Ok(_)) => {}
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn end(guard: &mut Option<Guard>, outcome: Outcome) {
    if let Some(guard) = guard.take() {
        guard.finish(outcome);
    }
}
