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
/// long. Closing at once would reset the connection, and the reset would overtake the answer.
const LINGER_BYTES: usize = 256 * 1024;
const LINGER_TIME: Duration = Duration::from_secs(1);

/// A client's socket: notes what is written for the connection's watcher, and closes gently.
pub struct ClientIo {
    tcp: TcpStream,
    activity: Arc<Activity>,
    closing: Option<Linger>,
}

/// The last moments of a connection: we have said that we are done, and read until the client has too.
struct Linger {
    deadline: Pin<Box<Sleep>>,
    budget: usize,
}

// === impl ClientIo ===

impl ClientIo {
    pub fn new(tcp: TcpStream, activity: Arc<Activity>) -> Self {
        Self { tcp, activity, closing: None }
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
                Poll::Pending => return self.deadline.as_mut().poll(cx),
            }
        }
        Poll::Ready(())
    }
}
