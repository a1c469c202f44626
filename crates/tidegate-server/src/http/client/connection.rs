use super::http1::Http1;
use super::informational::HeadWatch;
use super::{ClientError, EndpointBody, Malformed, SendError, UploadBody};
use crate::http::response::switches_protocols;
use http::{Request, Response};
use hyper::client::conn::http2;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;
use tokio::time::{Sleep, sleep_until};

/// A connection taken for one request.
pub struct Connection {
    pub(super) kind: Kind,
    pub(super) reused: bool,
}

pub(super) enum Kind {
    Http1(Box<Http1>),
    Http2(Shared),
}

/// An HTTP/2 connection and the heads that it brings.
#[derive(Clone)]
pub(super) struct Shared {
    pub sender: http2::SendRequest<UploadBody>,
    pub heads: Arc<HeadWatch>,
}

/// A request on its way, and the wait for the head of its response.
///
/// # Cancel safety
///
/// A request that is given up is cancelled: HTTP/1.1 closes the connection, HTTP/2 resets the stream.
pub struct Sending(Sent);

enum Sent {
    /// `None` after the response.
    Http1(Option<Box<Http1>>),
    Http2(Pin<Box<dyn Future<Output = Result<Response<EndpointBody>, SendError>> + Send>>),
}

// === impl Connection ===

impl Connection {
    /// A connection whose exchange is over.
    pub(super) fn used(http1: Box<Http1>) -> Self {
        Self { kind: Kind::Http1(http1), reused: true }
    }

    /// Returns true if the connection was used before: the peer may be closing it at this very moment.
    #[must_use]
    pub fn was_reused(&self) -> bool {
        self.reused
    }

    /// Returns true if the connection speaks HTTP/2.
    #[must_use]
    pub fn is_h2(&self) -> bool {
        matches!(self.kind, Kind::Http2(_))
    }

    /// Takes the connection's timer, set to this moment. One that was set before is only moved: that is cheaper
    /// than a new one with each request.
    pub fn take_timer(&mut self, due: Instant) -> Pin<Box<Sleep>> {
        let kept = match &mut self.kind {
            Kind::Http1(http1) => http1.timer.take(),
            Kind::Http2(_) => None,
        };
        match kept {
            Some(mut timer) => {
                timer.as_mut().reset(due.into());
                timer
            }
            None => Box::pin(sleep_until(due.into())),
        }
    }

    /// Sends a request. The future is ready with the head of its response, or with the failure, and with the
    /// request when it was certainly not sent.
    ///
    /// Over HTTP/1.1 `lines` follow the fields of the request: fields that are the same with many requests need
    /// not be put into each. HTTP/2 has no lines, and ignores them.
    pub fn send(self, request: Request<UploadBody>, lines: &[u8]) -> Sending {
        Sending(match self.kind {
            Kind::Http1(mut http1) => {
                http1.begin(request, lines);
                Sent::Http1(Some(http1))
            }
            Kind::Http2(shared) => Sent::Http2(Box::pin(shared.send(request))),
        })
    }
}

// === impl Shared ===

impl Shared {
    async fn send(
        mut self,
        request: Request<UploadBody>,
    ) -> Result<Response<EndpointBody>, SendError> {
        let mut failure = match self.sender.try_send_request(request).await {
            Ok(response) => return Ok(response.map(EndpointBody::http2)),
            Err(failure) => failure,
        };
        let unsent = failure.take_message();
        let error = failure.into_error().into();
        Err(match unsent {
            Some(request) => SendError::unsent(error, request),
            None if self.heads.is_exceeded() => ClientError::Informational.into(),
            None => error.into(),
        })
    }
}

// === impl Sending ===

impl Future for Sending {
    type Output = Result<Response<EndpointBody>, SendError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let taken = match &mut self.0 {
            Sent::Http2(sent) => return sent.as_mut().poll(cx),
            Sent::Http1(taken) => taken,
        };
        let Some(http1) = taken else { return Poll::Ready(Err(ClientError::Closed.into())) };
        let response = match ready!(http1.poll_head(cx)) {
            Ok(response) => response,
            Err(error) => {
                let head = http1.take_request();
                *taken = None;
                return Poll::Ready(Err(SendError::sent(error, head)));
            }
        };
        if switches_protocols(response.status()) && http1.is_uploading() {
            *taken = None;
            let early = Malformed("it switches protocols within the request");
            return Poll::Ready(Err(ClientError::from(early).into()));
        }
        let Some(http1) = taken.take() else { return Poll::Ready(Err(ClientError::Closed.into())) };
        Poll::Ready(Ok(response.map(|()| EndpointBody::http1(http1))))
    }
}
