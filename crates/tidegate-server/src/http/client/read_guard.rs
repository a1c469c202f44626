use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The socket of a connection to a server, whose bytes are checked as they are read.
pub struct ReadGuard<S, C> {
    inner: S,
    check: C,
}

/// A check of the bytes that a server sends.
pub trait ReadCheck: Unpin {
    /// Looks at the next bytes.
    ///
    /// # Errors
    ///
    /// When the connection must not be read further.
    fn check(&mut self, read: &[u8]) -> io::Result<()>;
}

// === impl ReadGuard ===

impl<S, C> ReadGuard<S, C> {
    pub fn new(inner: S, check: C) -> Self {
        Self { inner, check }
    }
}

impl<S: AsyncRead + Unpin, C: ReadCheck> AsyncRead for ReadGuard<S, C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.inner).poll_read(cx, buf))?;
        Poll::Ready(this.check.check(&buf.filled()[before..]))
    }
}

impl<S: AsyncWrite + Unpin, C: ReadCheck> AsyncWrite for ReadGuard<S, C> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
