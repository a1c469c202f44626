use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The body of a response that this process writes itself.
pub enum ResponseBody {
    /// All of it at once; `None` when it is empty or was sent.
    Whole(Option<Bytes>),
    /// Pieces, as they come.
    Stream(Box<dyn ByteStream>),
}

/// A source of the pieces of a streamed body.
pub trait ByteStream: Send {
    /// The next piece; `None` after the last.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>>;
}

// === impl ResponseBody ===

impl ResponseBody {
    /// A body without content.
    pub const EMPTY: Self = Self::Whole(None);

    /// A body that is sent piece by piece.
    #[must_use]
    pub fn stream(pieces: impl ByteStream + 'static) -> Self {
        Self::Stream(Box::new(pieces))
    }
}

impl From<Bytes> for ResponseBody {
    fn from(bytes: Bytes) -> Self {
        Self::Whole((!bytes.is_empty()).then_some(bytes))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Stream(pieces) => {
                pieces.poll_next(cx).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Stream(_) => SizeHint::default(),
        }
    }
}
