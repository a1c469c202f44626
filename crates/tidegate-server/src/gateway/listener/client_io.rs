use super::half_close::{HalfClosed, has_closed};
use crate::gateway::activity::Activity;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// Bytes of an unwanted body that are read before the connection is closed over it, and for how
/// long. Closing at once would reset the connection, and the reset would overtake the answer. Beyond these bytes
/// nothing is read, and the client has the rest of the time to read its answer.
const LINGER_BYTES: usize = 256 * 1024;
const LINGER_TIME: Duration = Duration::from_secs(1);

/// A client's socket: notes what is written for the connection's watcher, and closes gently.
pub struct ClientIo {
    tcp: TcpStream,
    activity: Arc<Activity>,
    /// True if the HTTP server above leaves it to this to notice that a client closes its side.
    watches_close: bool,
    half_closed: Option<HalfClosed>,
    closing: Option<Linger>,
}

/// The last moments of a connection: we have said that we are done, and read until the client has too.
struct Linger {
    deadline: Pin<Box<Sleep>>,
    budget: usize,
}

// === impl ClientIo ===

impl ClientIo {
    /// A socket of which a client may close its side and still read its response if `half_close`. Under TLS it may
    /// not: the end is a message there, and means that the client is gone.
    pub fn new(tcp: TcpStream, activity: Arc<Activity>, half_close: bool) -> Self {
        Self { tcp, activity, watches_close: half_close, half_closed: None, closing: None }
    }

    /// Fails if the client is gone while its request is being answered.
    fn check_client(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        if !self.watches_close || !self.activity.is_in_exchange() {
            return Ok(());
        }
        match &mut self.half_closed {
            // Writing to a client that is gone fails by itself.
            Some(_) if !self.activity.may_be_probed() => Ok(()),
            Some(half_closed) => half_closed.poll(&self.tcp, cx),
            None if !has_closed(&self.tcp, cx)? => Ok(()),
            // A client that closes its side does so after its request; one that does so later leaves.
            None if !self.activity.may_be_probed() => Err(io::ErrorKind::ConnectionAborted.into()),
            None => {
                let half_closed = self.half_closed.insert(HalfClosed::begin(&self.tcp)?);
                half_closed.poll(&self.tcp, cx)
            }
        }
    }

    fn note(&self, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match &written {
            Poll::Ready(Ok(bytes)) => self.activity.note_written(*bytes),
            Poll::Pending => self.activity.note_write_blocked(),
            Poll::Ready(Err(_)) => {}
        }
        written
    }
}

impl AsyncRead for ClientIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_read(cx, buf)
    }
}

impl AsyncWrite for ClientIo {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.tcp).poll_write(cx, buf);
        self.note(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.tcp).poll_write_vectored(cx, bufs);
        self.note(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.tcp.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The HTTP server flushes whenever it has nothing else to do.
        self.check_client(cx)?;
        self.activity.note_flushed();
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.closing.is_none() {
            ready!(Pin::new(&mut this.tcp).poll_shutdown(cx))?;
        }
        // In a tunnel this is half an end, and what the client still sends is for the upstream.
        if this.activity.has_switched() {
            return Poll::Ready(Ok(()));
        }
        let linger = this.closing.get_or_insert_with(|| Linger {
            deadline: Box::pin(sleep(LINGER_TIME)),
            budget: LINGER_BYTES,
        });
        linger.poll_drained(&mut this.tcp, cx).map(Ok)
    }
}

// === impl Linger ===

impl Linger {
    fn poll_drained(&mut self, tcp: &mut TcpStream, cx: &mut Context<'_>) -> Poll<()> {
        let mut chunk = [0; 4096];
        while self.budget > 0 {
            let mut buf = ReadBuf::new(&mut chunk);
            match Pin::new(&mut *tcp).poll_read(cx, &mut buf) {
                Poll::Ready(Ok(())) if !buf.filled().is_empty() => {
                    self.budget = self.budget.saturating_sub(buf.filled().len());
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => break,
            }
        }
        self.deadline.as_mut().poll(cx)
    }
}
