use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::ReadBuf;
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

/// An interim response that every client of HTTP/1.1 passes over, asked for or not.
const PROBE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The wait for a reset after the first probe; each later one is twice as long, so that a request of two minutes
/// gets 16 probes.
const FIRST_WAIT: Duration = Duration::from_millis(4);

/// A client that has closed its side of the connection while its request was being answered. That it still reads
/// its response, and that it is gone, look the same: one FIN. But a socket that is gone resets the connection when
/// it is written to, so the client gets interim responses until its response begins.
pub struct HalfClosed {
    timer: Pin<Box<Sleep>>,
    wait: Duration,
}

/// Returns true if the client has closed its side. Registers the task to be woken when it does.
///
/// # Errors
///
/// When the client has reset the connection.
pub fn has_closed(tcp: &TcpStream, cx: &mut Context<'_>) -> io::Result<bool> {
    match tcp.poll_read_ready(cx) {
        Poll::Pending => return Ok(false),
        Poll::Ready(ready) => ready?,
    }
    let mut next = [0; 1];
    match tcp.poll_peek(cx, &mut ReadBuf::new(&mut next)) {
        Poll::Ready(Ok(0)) => Ok(true),
        // The next request is there already, or nothing was.
        Poll::Ready(Ok(_)) | Poll::Pending => Ok(false),
        Poll::Ready(Err(error)) => Err(error),
    }
}

// === impl HalfClosed ===

impl HalfClosed {
    /// Probes a client that has just closed its side.
    ///
    /// # Errors
    ///
    /// When the client is gone.
    pub fn begin(tcp: &TcpStream) -> io::Result<Self> {
        probe(tcp)?;
        Ok(Self { timer: Box::pin(sleep(FIRST_WAIT)), wait: FIRST_WAIT })
    }

    /// Probes again when it is time.
    ///
    /// # Errors
    ///
    /// When the client is gone.
    pub fn poll(&mut self, tcp: &TcpStream, cx: &mut Context<'_>) -> io::Result<()> {
        while self.timer.as_mut().poll(cx).is_ready() {
            probe(tcp)?;
            self.wait *= 2;
            self.timer.as_mut().reset(Instant::now() + self.wait);
        }
        Ok(())
    }
}

/// Fails if the client has answered the last probe with a reset; sends the next one otherwise.
fn probe(tcp: &TcpStream) -> io::Result<()> {
    if let Some(error) = tcp.take_error()? {
        return Err(error);
    }
    match tcp.try_write(PROBE) {
        Ok(written) if written == PROBE.len() => Ok(()),
        // Half a head in front of the response would spoil it.
        Ok(_) => Err(io::ErrorKind::WriteZero.into()),
        Err(error) => Err(error),
    }
}
