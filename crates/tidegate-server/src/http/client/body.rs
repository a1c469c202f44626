use super::http1::{Detached, Http1, Switched};
use super::{ClientError, Connection};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::time::Sleep;

/// The body of a response from an endpoint. It drives its connection of HTTP/1.1, and gives it back at its end.
pub struct EndpointBody(Kind);

enum Kind {
    /// `None` when the connection was given back.
    Http1(Option<Box<Http1>>),
    /// The request is still being sent.
    Detached(Box<Detached>),
    Http2(Incoming),
}

// === impl EndpointBody ===

impl EndpointBody {
    pub(super) fn http1(http1: Box<Http1>) -> Self {
        Self(if http1.is_uploading() {
            Kind::Detached(Box::new(Detached::new(http1)))
        } else {
            Kind::Http1(Some(http1))
        })
    }

    pub(super) fn http2(body: Incoming) -> Self {
        Self(Kind::Http2(body))
    }

    /// Takes the connection of a body that was read to its end, if it can be used again.
    pub fn take_connection(&mut self) -> Option<Connection> {
        match &mut self.0 {
            Kind::Http1(http1) => {
                http1.take().filter(|http1| http1.is_reusable()).map(Connection::used)
            }
            Kind::Detached(_) | Kind::Http2(_) => None,
        }
    }

    /// Takes the connection of an endpoint that switches protocols.
    pub fn take_switched(&mut self) -> Option<Switched> {
        match &mut self.0 {
            Kind::Http1(http1) => http1.take().map(|http1| http1.into_switched()),
            Kind::Detached(_) | Kind::Http2(_) => None,
        }
    }

    /// Reads at most this much at once from now on, if the connection is this body's.
    pub fn limit_reads(&mut self, room: usize) {
        if let Kind::Http1(Some(http1)) = &mut self.0 {
            http1.limit_reads(room);
        }
    }

    /// Returns true if the connection has read more of the response than was taken.
    pub fn has_read(&self) -> bool {
        matches!(&self.0, Kind::Http1(Some(http1)) if http1.has_read())
    }

    /// Gives a timer back, for the next request on the connection.
    pub fn keep_timer(&mut self, timer: Pin<Box<Sleep>>) {
        if let Kind::Http1(Some(http1)) = &mut self.0 {
            http1.timer = Some(timer);
        }
    }
}

impl Body for EndpointBody {
    type Data = Bytes;
    type Error = ClientError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ClientError>>> {
        match &mut self.0 {
            Kind::Http1(None) => Poll::Ready(None),
            Kind::Http1(Some(http1)) => http1.poll_frame(cx),
            Kind::Detached(detached) => detached.poll_frame(cx),
            Kind::Http2(body) => {
                let polled = Pin::new(body).poll_frame(cx);
                polled.map(|frame| frame.map(|frame| frame.map_err(ClientError::from)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            Kind::Http1(http1) => http1.as_ref().is_none_or(|http1| http1.is_end_stream()),
            Kind::Detached(detached) => detached.is_end_stream(),
            Kind::Http2(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            Kind::Http1(None) => SizeHint::with_exact(0),
            Kind::Http1(Some(http1)) => {
                http1.bytes_left().map_or_else(SizeHint::new, SizeHint::with_exact)
            }
            Kind::Detached(detached) => detached.size_hint(),
            Kind::Http2(body) => body.size_hint(),
        }
    }
}
