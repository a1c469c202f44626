use super::Http1;
use crate::http::client::ClientError;
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use std::future::poll_fn;
use std::task::{Context, Poll, ready};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// The body of a response that began before its request was sent to the end. The connection has a task of its own
/// then: the rest of the request must go out while nobody takes the response, and when the response is over.
pub struct Detached {
    pieces: Receiver<Result<Frame<Bytes>, ClientError>>,
    bytes_left: Option<u64>,
    ended: bool,
}

// === impl Detached ===

impl Detached {
    pub fn new(http1: Box<Http1>) -> Self {
        let (sender, pieces) = channel(1);
        let (bytes_left, ended) = (http1.bytes_left(), http1.is_end_stream());
        tokio::spawn(drive(http1, sender));
        Self { pieces, bytes_left, ended }
    }

    pub fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ClientError>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let piece = ready!(self.pieces.poll_recv(cx));
        if let (Some(Ok(frame)), Some(left)) = (&piece, &mut self.bytes_left) {
            *left = left.saturating_sub(frame.data_ref().map_or(0, |data| data.len() as u64));
            self.ended = *left == 0;
        }
        self.ended |= piece.is_none();
        Poll::Ready(piece)
    }

    pub fn is_end_stream(&self) -> bool {
        self.ended
    }

    pub fn size_hint(&self) -> SizeHint {
        self.bytes_left.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}

/// Carries both directions until both are done, or nobody wants the response any more.
async fn drive(mut http1: Box<Http1>, pieces: Sender<Result<Frame<Bytes>, ClientError>>) {
    // The taker of a known length leaves with the last piece: only before that is it gone.
    while !http1.is_end_stream() {
        let next = poll_fn(|cx| {
            if let Poll::Ready(Err(error)) = http1.poll_upload(cx) {
                return Poll::Ready(Some(Err(error)));
            }
            http1.poll_frame(cx)
        });
        let piece = tokio::select! {
            biased;
            () = pieces.closed() => return,
            piece = next => piece,
        };
        let Some(piece) = piece else { break };
        let failed = piece.is_err();
        let mut uploaded = false;
        let room = loop {
            tokio::select! {
                biased;
                room = pieces.reserve() => break room,
                _ = poll_fn(|cx| http1.poll_upload(cx)), if !uploaded => uploaded = true,
            }
        };
        let Ok(room) = room else { return };
        room.send(piece);
        if failed {
            return;
        }
    }
    drop(pieces);
    let _ = poll_fn(|cx| http1.poll_upload(cx)).await;
}
