use super::upload::Upload;
use super::{Chunk, Framing, ResponseHead, Switched, read_buffer, request_head};
use crate::http::client::informational::INFORMATIONAL_MAX;
use crate::http::client::stream::Stream;
use crate::http::client::{ClientError, UploadBody};
use crate::http::response::switches_protocols;
use crate::http::wire::UPSTREAM_BUFFER_MAX;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::header::HeaderMap;
use http::request::Parts;
use http::{Method, Request, Response};
use http_body::Frame;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead as _, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// The first read of a response, and the least room for a read. A read that fills its room doubles the next one.
const READ_FIRST: usize = 8 * 1024;
const READ_MIN: usize = 2 * 1024;

/// Bytes that go out before the next piece of the body is asked for.
const WRITE_MAX: usize = 16 * 1024;

/// A connection of HTTP/1.1 that carries one exchange at a time. It has no task of its own: it is driven by the
/// request that uses it, and nothing is read while nobody asks for more.
pub struct Http1 {
    stream: Stream,
    /// Bytes that were read and not used. Without any it has no memory: the thread's connections share buffers.
    read: BytesMut,
    /// True while `read` has memory of the thread's.
    has_buffer: bool,
    read_size: usize,
    /// The most that the taker of the body has room for.
    room: usize,
    /// Bytes of the request that are to be written, and the number of those that were.
    out: Vec<u8>,
    written: usize,
    /// A long piece of the body, to be written after them.
    piece: Bytes,
    flushed: bool,
    upload: Option<Upload>,
    /// The head of the request, until its response begins.
    request: Option<Parts>,
    /// An empty map for the response: that of the request before.
    headers: HeaderMap,
    informational: u32,
    /// The rest of the response's body; `None` when there is none.
    framing: Option<Framing>,
    keep_alive: bool,
    /// The timer of the request on the connection, used again by the next one.
    pub timer: Option<Pin<Box<Sleep>>>,
}

// === impl Http1 ===

impl Http1 {
    pub fn new(stream: Stream) -> Self {
        Self {
            stream,
            read: BytesMut::new(),
            has_buffer: false,
            read_size: READ_FIRST,
            room: UPSTREAM_BUFFER_MAX,
            out: Vec::new(),
            written: 0,
            piece: Bytes::new(),
            flushed: true,
            upload: None,
            request: None,
            headers: HeaderMap::new(),
            informational: 0,
            framing: None,
            keep_alive: true,
            timer: None,
        }
    }

    /// Begins an exchange: a request, and further lines of its head. It goes out when its response is polled for.
    pub fn begin(&mut self, request: Request<UploadBody>, lines: &[u8]) {
        let (mut parts, body) = request.into_parts();
        self.upload = Upload::frame(&mut parts.headers, body);
        if self.out.capacity() > WRITE_MAX {
            self.out = Vec::new();
        }
        request_head::write(&mut self.out, &parts, lines);
        self.flushed = false;
        self.informational = 0;
        self.read_size = READ_FIRST;
        self.room = UPSTREAM_BUFFER_MAX;
        self.request = Some(parts);
    }

    /// Takes the head of a request without a response.
    pub fn take_request(&mut self) -> Option<Parts> {
        self.request.take()
    }

    /// Sends the request, and returns the head of its response. The body stays in the connection.
    pub fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<Response<()>, ClientError>> {
        let answers_head = self.request.as_ref().is_some_and(|head| head.method == Method::HEAD);
        let mut may_be_whole = true;
        loop {
            if let Poll::Ready(sent) = self.poll_upload(cx) {
                sent?;
            }
            while may_be_whole && !self.read.is_empty() {
                match ResponseHead::take(&mut self.read, &mut self.headers, answers_head)? {
                    None => break,
                    Some(head) => {
                        if let Some(response) = self.answered(head)? {
                            // Nobody may ask for a body that there is not.
                            self.give_back();
                            return Poll::Ready(Ok(response));
                        }
                    }
                }
            }
            let before = self.read.len();
            if ready!(self.poll_fill(cx))? == 0 {
                return Poll::Ready(Err(ClientError::Closed));
            }
            // A head that comes byte by byte is not parsed with each.
            may_be_whole = before == 0 || self.read[before..].contains(&b'\n');
        }
    }

    /// Begins the response that a head is of; `None` for an informational one.
    fn answered(&mut self, head: ResponseHead) -> Result<Option<Response<()>>, ClientError> {
        let ResponseHead { status, version, mut headers, framing, keep_alive } = head;
        if status.is_informational() && !switches_protocols(status) {
            self.informational += 1;
            headers.clear();
            self.headers = headers;
            return match self.informational > INFORMATIONAL_MAX {
                true => Err(ClientError::Informational),
                false => Ok(None),
            };
        }
        if let Some(Parts { headers, .. }) = self.request.take() {
            self.headers = headers;
            self.headers.clear();
        }
        self.keep_alive &= keep_alive && !switches_protocols(status);
        self.framing = if matches!(framing, Framing::Length(0)) { None } else { Some(framing) };
        let mut response = Response::new(());
        *response.status_mut() = status;
        *response.version_mut() = version;
        *response.headers_mut() = headers;
        Ok(Some(response))
    }

    /// The next piece of the response's body.
    pub fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ClientError>>> {
        loop {
            let taken = self.take_piece();
            self.give_back();
            match taken {
                Ok(Some(piece)) => return Poll::Ready(piece.map(Ok)),
                Ok(None) => {}
                Err(error) => return Poll::Ready(Some(Err(self.broken(error)))),
            }
            match ready!(self.poll_fill(cx)) {
                Ok(0) if matches!(self.framing, Some(Framing::UntilClose)) => {
                    self.framing = None;
                    self.keep_alive = false;
                    return Poll::Ready(None);
                }
                Ok(0) => return Poll::Ready(Some(Err(self.broken(ClientError::Closed)))),
                Ok(_) => {}
                Err(error) => return Poll::Ready(Some(Err(self.broken(error.into())))),
            }
        }
    }

    /// Takes a piece of the body, or its end, out of what was read; `None` when more must be read.
    fn take_piece(&mut self) -> Result<Option<Option<Frame<Bytes>>>, ClientError> {
        let Some(framing) = &mut self.framing else { return Ok(Some(None)) };
        if self.read.is_empty() {
            return Ok(None);
        }
        let len = match framing {
            Framing::UntilClose => self.read.len(),
            Framing::Length(left) => {
                let len = self.read.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= len as u64;
                if *left == 0 {
                    self.framing = None;
                }
                len
            }
            Framing::Chunked(scan) => {
                return Ok(match scan.take(&mut self.read)? {
                    Chunk::Missing => None,
                    Chunk::Data(data) => Some(Some(Frame::data(data))),
                    Chunk::End(trailers) => {
                        self.framing = None;
                        Some(trailers.map(Frame::trailers))
                    }
                });
            }
        };
        Ok(Some(Some(Frame::data(read_buffer::piece(&mut self.read, len)))))
    }

    fn broken(&mut self, error: ClientError) -> ClientError {
        self.keep_alive = false;
        error
    }

    /// Sends what is left of the request. Ready when all of it was sent, or the endpoint takes no more.
    pub fn poll_upload(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ClientError>> {
        if self.flushed && self.upload.is_none() {
            return Poll::Ready(Ok(()));
        }
        loop {
            if self.piece.is_empty()
                && self.out.len() < WRITE_MAX
                && let Some(upload) = &mut self.upload
            {
                // A piece that is here already goes out with what is before it, in one write.
                match upload.poll_next(cx, &mut self.out, &mut self.piece) {
                    Poll::Ready(Ok(true)) => continue,
                    Poll::Ready(Ok(false)) => self.upload = None,
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(self.broken(error))),
                    Poll::Pending => {}
                }
            }
            if self.out.is_empty() && self.piece.is_empty() {
                if !self.flushed {
                    let flushed = ready!(Pin::new(&mut self.stream).poll_flush(cx));
                    self.flushed = true;
                    if flushed.is_err() {
                        self.stop_sending();
                    }
                }
                return if self.upload.is_none() { Poll::Ready(Ok(())) } else { Poll::Pending };
            }
            match ready!(self.poll_write(cx)) {
                Ok(written) if written > 0 => self.advance(written),
                _ => {
                    self.stop_sending();
                    return Poll::Ready(Ok(()));
                }
            }
        }
    }

    /// Gives up a request that the endpoint takes no more of. It may have answered all the same: its response, or
    /// the failure of the connection, is still to be read.
    fn stop_sending(&mut self) {
        self.upload = None;
        self.out.clear();
        self.written = 0;
        self.piece = Bytes::new();
        self.flushed = true;
        self.keep_alive = false;
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.flushed = false;
        let stream = Pin::new(&mut self.stream);
        let out = &self.out[self.written..];
        if self.piece.is_empty() {
            stream.poll_write(cx, out)
        } else if out.is_empty() {
            stream.poll_write(cx, &self.piece)
        } else {
            stream.poll_write_vectored(cx, &[IoSlice::new(out), IoSlice::new(&self.piece)])
        }
    }

    fn advance(&mut self, written: usize) {
        let of_out = written.min(self.out.len() - self.written);
        self.written += of_out;
        self.piece.advance(written - of_out);
        if self.written == self.out.len() {
            self.out.clear();
            self.written = 0;
        }
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.read.is_empty() {
            self.read = read_buffer::take();
            self.has_buffer = true;
        } else if self.read.capacity() - self.read.len() < READ_MIN {
            self.read.reserve(self.read_size);
        }
        let size = self.read_size.min(self.room).max(READ_MIN);
        let mut room = (&mut self.read).limit(size);
        let polled = pin!(self.stream.read_buf(&mut room)).poll(cx);
        self.give_back();
        let read = ready!(polled)?;
        if read == self.read_size {
            self.read_size = (2 * size).min(UPSTREAM_BUFFER_MAX);
        }
        Poll::Ready(Ok(read))
    }

    /// Gives an empty buffer back.
    fn give_back(&mut self) {
        if self.read.is_empty() && std::mem::take(&mut self.has_buffer) {
            read_buffer::give_back(&mut self.read);
        }
    }

    /// Reads at most this much of the body at once.
    pub fn limit_reads(&mut self, room: usize) {
        self.room = room;
    }

    /// Returns true if bytes of the response were read and not taken.
    pub fn has_read(&self) -> bool {
        !self.read.is_empty()
    }

    /// Returns true if the request is not sent to its end.
    pub fn is_uploading(&self) -> bool {
        self.upload.is_some() || !self.flushed
    }

    /// Returns true if the whole body of the response was taken.
    pub fn is_end_stream(&self) -> bool {
        self.framing.is_none()
    }

    /// The bytes that are left of the response's body, if they are known.
    pub fn bytes_left(&self) -> Option<u64> {
        match &self.framing {
            None => Some(0),
            Some(Framing::Length(left)) => Some(*left),
            Some(Framing::Chunked(_) | Framing::UntilClose) => None,
        }
    }

    /// Returns true if the exchange is over, and the connection can take another.
    pub fn is_reusable(&self) -> bool {
        self.keep_alive && self.framing.is_none() && !self.is_uploading() && self.read.is_empty()
    }

    /// Returns true if the endpoint has not closed the idle connection, nor sent what nobody asked for.
    pub fn is_open(&mut self, cx: &mut Context<'_>) -> bool {
        // One byte is as much as it takes to see that there is any, or the end.
        let mut byte = [0; 1];
        Pin::new(&mut self.stream).poll_read(cx, &mut ReadBuf::new(&mut byte)).is_pending()
    }

    /// Takes the stream of a connection whose endpoint switches protocols.
    pub fn into_switched(self) -> Switched {
        Switched::new(self.stream, self.read)
    }
}
