use super::guard::ResponseGuard;
use crate::gateway::buffer::{Piece, ResponseBuffer};
use crate::http::ResponseBody;
use crate::http::client::{ClientError, EndpointBody};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// The body of a response on the data port.
pub enum GatewayBody {
    /// Written here: refusals, failures, the control plane.
    Own(ResponseBody),
    /// An upstream's, passed on as it comes.
    Proxied(ProxiedBody),
}

/// An upstream's answer, and everything that is held until it has been passed on.
pub struct ProxiedBody {
    inner: EndpointBody,
    held: Arc<ResponseGuard>,
    buffer: Arc<ResponseBuffer>,
    /// True if the reaper watches the stream: only then must each read be recorded.
    watched: bool,
    /// True after the first piece.
    begun: bool,
    /// True while the server may not have written what it was given.
    unwritten: bool,
    /// The failure of an answer, until all that came before it was written.
    failure: Option<ClientError>,
    idle: IdleWatch,
}

/// The answer broke off.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// The upstream's connection failed.
    #[error("the upstream's answer broke off: {0}")]
    Upstream(#[from] ClientError),
    /// The upstream sent nothing for too long.
    #[error(transparent)]
    Idle(#[from] StreamIdle),
    /// The client took nothing for too long, and what the answer held was given up.
    #[error("the client took nothing of its answer for too long")]
    Stopped,
}

/// An upstream began to answer and then sent nothing for this long.
#[derive(Debug, thiserror::Error)]
#[error("the upstream sent nothing for {0:?} in the middle of its answer")]
pub struct StreamIdle(pub Duration);

/// Ends an answer that stands still. The timer is made only when an answer is first waited for: most are
/// complete when their head is.
struct IdleWatch {
    limit: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    progressed: bool,
}

// === impl GatewayBody ===

impl From<ResponseBody> for GatewayBody {
    fn from(body: ResponseBody) -> Self {
        Self::Own(body)
    }
}

impl Body for GatewayBody {
    type Data = Piece;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, BodyError>>> {
        match &mut *self {
            Self::Own(body) => {
                let polled = Pin::new(body).poll_frame(cx);
                polled.map(|frame| {
                    frame.map(|frame| match frame {
                        Ok(frame) => Ok(frame.map_data(Piece::from)),
                        Err(never) => match never {},
                    })
                })
            }
            Self::Proxied(body) => body.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Own(body) => body.is_end_stream(),
            Self::Proxied(body) => body.inner.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own(body) => body.size_hint(),
            Self::Proxied(body) => body.inner.size_hint(),
        }
    }
}

// === impl ProxiedBody ===

impl ProxiedBody {
    /// An answer whose head is here. One without a body is over at once.
    pub(in crate::gateway::proxy) fn new(
        inner: EndpointBody,
        held: Arc<ResponseGuard>,
        buffer: Arc<ResponseBuffer>,
        watched: bool,
        idle_limit: Duration,
    ) -> Self {
        let idle = IdleWatch { limit: idle_limit, timer: None, progressed: false };
        let mut body = Self {
            inner,
            held,
            buffer,
            watched,
            begun: false,
            unwritten: true,
            failure: None,
            idle,
        };
        body.complete_if_ended();
        body
    }

    fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, BodyError>>> {
        if self.watched && !self.held.touch() && !self.inner.is_end_stream() {
            return Poll::Ready(Some(Err(BodyError::Stopped)));
        }
        // Until the client has taken what is here, its upstream is read no further.
        let room = ready!(self.buffer.poll_room(cx, self.inner.has_read()));
        self.inner.limit_reads(room);
        match self.poll_inner(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                self.idle.progressed = true;
                // Nothing follows trailers, and a server need not ask whether something does.
                if frame.is_trailers() {
                    self.complete();
                }
                self.complete_if_ended();
                // An answer that is over is no longer held, and needs no word of its beginning.
                if !std::mem::replace(&mut self.begun, true) && !self.inner.is_end_stream() {
                    self.held.prefilled();
                }
                Poll::Ready(Some(Ok(frame.map_data(|bytes| self.buffer.take(bytes)))))
            }
            Poll::Ready(Some(Err(error))) => {
                self.fail();
                Poll::Ready(Some(Err(error.into())))
            }
            Poll::Ready(None) => {
                self.complete();
                Poll::Ready(None)
            }
            Poll::Pending => self.idle.poll(cx, &self.held).map(|idle| {
                self.fail();
                Some(Err(idle.into()))
            }),
        }
    }

    /// The next piece of the upstream's answer. A failure waits for one turn of the thread if it comes together
    /// with what was before it: the server would drop what it has not written.
    fn poll_inner(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ClientError>>> {
        if let Some(failure) = self.failure.take() {
            return Poll::Ready(Some(Err(failure)));
        }
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        if self.unwritten
            && let Poll::Ready(Some(Err(failure))) = polled
        {
            self.failure = Some(failure);
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.unwritten = polled.is_ready();
        polled
    }

    fn complete_if_ended(&mut self) {
        if self.inner.is_end_stream() {
            self.complete();
        }
    }

    fn complete(&mut self) {
        self.buffer.end();
        if let Some(exchange) = self.held.take() {
            exchange.complete(self.inner.take_connection());
        }
    }

    fn fail(&self) {
        self.buffer.end();
        if let Some(exchange) = self.held.take() {
            exchange.fail();
        }
    }
}

// === impl IdleWatch ===

impl IdleWatch {
    /// Ready when the upstream has stood still for too long. While the request is still being sent, that the
    /// answer waits for it is no standing still.
    fn poll(&mut self, cx: &mut Context<'_>, held: &ResponseGuard) -> Poll<StreamIdle> {
        let limit = self.limit;
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(limit)));
        if std::mem::take(&mut self.progressed) {
            timer.as_mut().reset(Instant::now() + limit);
        }
        while timer.as_mut().poll(cx).is_ready() {
            match held.upload_progress().map(|progress| Instant::from_std(progress) + limit) {
                Some(due) if due > Instant::now() => timer.as_mut().reset(due),
                _ => return Poll::Ready(StreamIdle(limit)),
            }
        }
        Poll::Pending
    }
}
