use super::connections::{ConnectionSlot, Connections, Peer};
use super::sender_tokens::SenderTokens;
use super::stop::Stop;
use crate::http::tls::PeerCertificate;
use bytes::{Bytes, BytesMut};
use std::future::{pending, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;
use tidegate::pipeline::{Connection, Entrance, Protocol};
use tokio::io::{AsyncRead as _, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf, ReadHalf};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_rustls::server::TlsStream;

/// The most that is read at once: a quarter of the smallest window's bytes, so that senders alternate also
/// when there is hardly any room.
const CHUNK: usize = 16 * 1024;

/// Longest time until a peer that needs a token has shown it: as long as a handshake of TLS may take.
const IDENTITY_WITHIN: Duration = Duration::from_secs(10);

/// Context of every connection of the ingestion.
#[derive(Clone, Debug)]
pub struct SenderContext {
    pub entrance: Entrance,
    pub connections: Arc<Connections>,
    pub connections_max: usize,
    pub idle_timeout: Duration,
    pub write_timeout: Duration,
    pub access: Arc<SenderTokens>,
    pub stopping: watch::Receiver<Stop>,
}

/// The reason why nothing more is read from a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Its peer is done.
    Eof,
    /// Its peer vanished, or the socket broke.
    Broken,
    /// The peer sent nothing for too long.
    Idle,
    /// The peer did not show who it is in time, or before others needed the connection.
    Unknown,
    /// The pipeline has ended it: its framing is broken, or another one speaks for its sender.
    Cut,
    /// The process stops.
    Stopping,
}

/// The side of a connection that bytes come from.
pub trait ChunkRead {
    /// Waits for bytes, at most [`CHUNK`]; `None` at the end.
    async fn chunk(&mut self, buffer: &mut BytesMut) -> io::Result<Option<Bytes>>;
}

/// Reads a connection into the pipeline and writes what the pipeline answers, to its end.
pub async fn serve<R: ChunkRead, W: AsyncWrite + Unpin>(
    (reader, writer): (R, W),
    (peer, certificate): (SocketAddr, Option<PeerCertificate>),
    slot: &ConnectionSlot,
    context: SenderContext,
) {
    let protocol = slot.protocol();
    let certified = certificate.map_or(Ok(None), |it| context.access.certified(&it));
    let connection = context.entrance.connect_certified(peer, protocol, certified);
    slot.peer().set_connection(&connection);
    let writing = write(writer, Arc::clone(&connection), context.write_timeout);
    let reading = async {
        let end = tokio::select! {
            end = read(reader, &connection, &context) => end,
            () = unknown(slot.peer(), context.access.needs_token(protocol)) => End::Unknown,
        };
        // What came whole is worth keeping. Only frames are sent again, and only their answers need a reader.
        if protocol == Protocol::Frames && matches!(end, End::Broken | End::Idle | End::Unknown) {
            connection.cut();
        }
        if end != End::Eof {
            connection.break_off();
        }
        tracing::debug!(%peer, protocol = protocol.name(), ?end, "a sender's connection ended");
        context.entrance.end(&connection).await;
    };
    tokio::join!(reading, writing);
}

/// Waits until a peer has to go that has not shown who it is: to make room, or after a while where it needs a
/// token.
async fn unknown(peer: &Peer, needs_token: bool) {
    let in_time = async {
        sleep(IDENTITY_WITHIN).await;
        if !(needs_token && peer.is_unknown()) {
            pending::<()>().await;
        }
    };
    tokio::select! {
        () = peer.evicted() => {}
        () = in_time => {}
    }
}

async fn read(
    mut reader: impl ChunkRead,
    connection: &Arc<Connection>,
    context: &SenderContext,
) -> End {
    let mut buffer = BytesMut::new();
    let mut stopping = context.stopping.clone();
    loop {
        let chunk = tokio::select! {
            biased;
            () = connection.until_cut() => return End::Cut,
            _ = stopping.wait_for(|stop| *stop >= Stop::Drain) => return End::Stopping,
            chunk = async {
                connection.until_released().await;
                timeout(context.idle_timeout, reader.chunk(&mut buffer)).await
            } => chunk,
        };
        match chunk {
            Ok(Ok(Some(chunk))) => {
                // Waits for credit: what is not read stays with the kernel, and so with the sender.
                tokio::select! {
                    pushed = context.entrance.push(connection, chunk) => match pushed {
                        Ok(()) => {}
                        Err(_closed) => return End::Stopping,
                    },
                    () = connection.until_cut() => return End::Cut,
                }
            }
            Ok(Ok(None)) => return End::Eof,
            Ok(Err(_)) => return End::Broken,
            // A sender that waits for its acks has nothing to say.
            Err(_elapsed) if connection.unanswered() > 0 => {}
            Err(_elapsed) => return End::Idle,
        }
    }
}

async fn fill(reader: &mut OwnedReadHalf, buffer: &mut BytesMut) -> io::Result<Option<Bytes>> {
    // A connection that says nothing needs no buffer.
    reader.readable().await?;
    buffer.reserve(CHUNK);
    let mut limited = reader.take(CHUNK as u64);
    let count = limited.read_buf(buffer).await?;
    if count == 0 {
        return Ok(None);
    }
    // A window counts what was read, not the buffer that it lies in: a few bytes must not keep all of it alive.
    if count < CHUNK / 2 {
        let small = Bytes::copy_from_slice(buffer);
        buffer.clear();
        return Ok(Some(small));
    }
    Ok(Some(std::mem::take(buffer).freeze()))
}

impl ChunkRead for OwnedReadHalf {
    async fn chunk(&mut self, buffer: &mut BytesMut) -> io::Result<Option<Bytes>> {
        fill(self, buffer).await
    }
}

/// TLS has no readiness to wait for, and so needs the buffer before it knows of any bytes: that of the stack, in
/// each poll, as a connection that says nothing needs none.
impl ChunkRead for ReadHalf<TlsStream<TcpStream>> {
    async fn chunk(&mut self, _buffer: &mut BytesMut) -> io::Result<Option<Bytes>> {
        poll_fn(|cx| {
            let mut stack = [0; CHUNK];
            let mut chunk = ReadBuf::new(&mut stack);
            ready!(Pin::new(&mut *self).poll_read(cx, &mut chunk))?;
            let bytes = chunk.filled();
            Poll::Ready(Ok((!bytes.is_empty()).then(|| Bytes::copy_from_slice(bytes))))
        })
        .await
    }
}

async fn write(
    mut writer: impl AsyncWrite + Unpin,
    connection: Arc<Connection>,
    write_timeout: Duration,
) {
    while let Some(bytes) = connection.next_reply().await {
        let written = async {
            writer.write_all(&bytes).await?;
            // TLS may still have a part of it.
            writer.flush().await
        };
        match timeout(write_timeout, written).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::debug!(%error, peer = %connection.peer(), "a sender left before its answer");
                return connection.cut();
            }
            Err(_elapsed) => {
                let limit_ms = write_timeout.as_millis();
                tracing::warn!(peer = %connection.peer(), limit_ms, "a sender does not read its acks");
                return connection.cut();
            }
        }
    }
    // The peer may be gone already, which ends it just as well.
    let _ = writer.shutdown().await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    async fn read_of(sent: &[u8]) -> BytesMut {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut reader, _writer) = listener.accept().await.unwrap().0.into_split();
        peer.write_all(sent).await.unwrap();
        reader.readable().await.unwrap();
        let chunk = fill(&mut reader, &mut BytesMut::new()).await.unwrap().unwrap();
        chunk.try_into_mut().expect("nobody else holds it")
    }

    /// Windows count bytes: what is kept alive must not be many times as much.
    #[tokio::test]
    async fn what_was_read_keeps_no_more_memory_alive_than_twice_what_it_counts() {
        for count in [1, 100, 5_000, CHUNK] {
            let chunk = read_of(&vec![7; count]).await;
            assert!(!chunk.is_empty() && chunk.capacity() <= 2 * chunk.len(), "{count}");
        }
    }
}
