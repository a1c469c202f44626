use super::connections::Connections;
use super::stop::Stop;
use bytes::{Bytes, BytesMut};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tidegate::pipeline::{Connection, Entrance, Protocol};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::watch;
use tokio::time::timeout;

/// The most that is read at once: a quarter of the smallest window's bytes, so that senders alternate also
/// when there is hardly any room.
const CHUNK: usize = 16 * 1024;

/// Context of every connection of the ingestion.
#[derive(Clone, Debug)]
pub struct SenderContext {
    pub entrance: Entrance,
    pub connections: Arc<Connections>,
    pub connections_max: usize,
    pub idle_timeout: Duration,
    pub write_timeout: Duration,
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
    /// The pipeline has ended it: its framing is broken, or another one speaks for its sender.
    Cut,
    /// The process stops.
    Stopping,
}

/// Reads a connection into the pipeline and writes what the pipeline answers, to its end.
pub async fn serve(tcp: TcpStream, peer: SocketAddr, protocol: Protocol, context: SenderContext) {
    let connection = context.entrance.connect(peer, protocol);
    let (reader, writer) = tcp.into_split();
    let writing = write(writer, Arc::clone(&connection), context.write_timeout);
    let reading = async {
        let end = read(reader, &connection, &context).await;
        // What came whole is worth keeping. Only frames are sent again, and only their answers need a reader.
        if protocol == Protocol::Frames && matches!(end, End::Broken | End::Idle) {
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

async fn read(
    mut reader: OwnedReadHalf,
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
            chunk = timeout(context.idle_timeout, fill(&mut reader, &mut buffer)) => chunk,
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

async fn write(mut writer: OwnedWriteHalf, connection: Arc<Connection>, write_timeout: Duration) {
    while let Some(bytes) = connection.next_reply().await {
        match timeout(write_timeout, writer.write_all(&bytes)).await {
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
