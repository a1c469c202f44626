use super::completion::Stream;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Interval, interval};

/// Number and interval of the events of a [`Ticker`].
const TICKS: u32 = 10;
const TICK: Duration = Duration::from_millis(200);

/// Response body of the mock.
pub(in crate::mock) enum MockBody {
    Text(Option<Bytes>),
    Events(Box<Ticker>),
    Completion(Box<Stream>),
}

/// Ten events, one every 200 ms.
pub(in crate::mock) struct Ticker {
    ticks: Interval,
    sent: u32,
}

// === impl MockBody ===

impl MockBody {
    pub(super) fn text(text: Bytes) -> Self {
        Self::Text(Some(text))
    }

    pub(super) fn ticker() -> Self {
        Self::Events(Box::new(Ticker { ticks: interval(TICK), sent: 0 }))
    }

    pub(super) fn completion(stream: Stream) -> Self {
        Self::Completion(Box::new(stream))
    }

    fn poll_text(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match self {
            Self::Text(text) => Poll::Ready(text.take()),
            Self::Events(ticker) => ticker.poll_event(cx),
            Self::Completion(stream) => poll_stream(stream, cx),
        }
    }
}

impl Body for MockBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.poll_text(cx).map(|text| text.map(|text| Ok(Frame::data(text))))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Text(text) => {
                SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64))
            }
            _ => SizeHint::default(),
        }
    }
}

fn poll_stream(stream: &mut Stream, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
    if stream.is_over() {
        return Poll::Ready(None);
    }
    let sent = stream.sent_tokens();
    let decoded = ready!(stream.ticket().poll_decoded(sent, cx));
    let beginning = stream.beginning().unwrap_or_default();
    Poll::Ready(Some(Bytes::from(beginning + &stream.next_events(decoded))))
}

// === impl Ticker ===

impl Ticker {
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.sent == TICKS {
            return Poll::Ready(None);
        }
        ready!(self.ticks.poll_tick(cx));
        self.sent += 1;
        Poll::Ready(Some(Bytes::from(format!("data: event {} of {TICKS}\n\n", self.sent))))
    }
}
