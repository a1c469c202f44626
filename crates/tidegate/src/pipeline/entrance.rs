use super::access::{AccessError, SenderClient};
use super::connection::Connection;
use super::item::Chunk;
use super::measure::meter::StageMeter;
use super::measure::signal_cell::SignalCell;
use super::protocol::Protocol;
use super::shares::Shares;
use crate::channel::{Closed, WindowedSender};
use bytes::Bytes;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Input of a pipeline. The pipeline ends once every clone of it is gone and all records are stored.
#[derive(Clone, Debug)]
pub struct Entrance {
    chunks: WindowedSender<Chunk>,
    signal: SignalCell,
    connections: Arc<AtomicU64>,
    meter: Arc<StageMeter>,
    shares: Arc<Shares>,
}

// === impl Entrance ===

impl Entrance {
    pub(crate) fn new(
        chunks: WindowedSender<Chunk>,
        signal: SignalCell,
        meter: Arc<StageMeter>,
    ) -> Self {
        let shares = Arc::new(Shares::new());
        Self { chunks, signal, connections: Arc::default(), meter, shares }
    }

    /// Registers a new connection.
    #[must_use]
    pub fn connect(&self, peer: SocketAddr, protocol: Protocol) -> Arc<Connection> {
        self.connect_certified(peer, protocol, Ok(None))
    }

    /// Registers a new connection with the client that its certificate names, or the reason why it names none that
    /// can be let in: the sender is told when it has said hello.
    #[must_use]
    pub fn connect_certified(
        &self,
        peer: SocketAddr,
        protocol: Protocol,
        certified: Result<Option<Arc<SenderClient>>, AccessError>,
    ) -> Arc<Connection> {
        let id = self.connections.fetch_add(1, Ordering::Relaxed);
        Arc::new(Connection::new(
            id,
            peer,
            protocol,
            certified,
            (self.signal.clone(), Arc::clone(&self.shares)),
        ))
    }

    /// Hands over what was read from a connection. Waits while the pipeline has no room for it, in turn with
    /// all other connections; and while its sender has much in there and another one has little to send.
    ///
    /// # Errors
    ///
    /// When the pipeline has ended.
    ///
    /// # Cancel safety
    ///
    /// Dropped early, the bytes are gone, and so must the connection be.
    pub async fn push(&self, connection: &Arc<Connection>, bytes: Bytes) -> Result<(), Closed> {
        connection.expect_answer();
        let occupied = Some(self.shares.enter(connection.share(), bytes.len()).await);
        let chunk = Chunk { connection: Arc::clone(connection), bytes: Some(bytes), occupied };
        self.meter.waiting(self.chunks.send(chunk)).await.map_err(|_unsent| Closed)
    }

    /// Nothing more comes from a connection. To be called once for each, also for one that was cut: what was
    /// kept for it is let go of.
    pub async fn end(&self, connection: &Arc<Connection>) {
        let connection_end = Arc::clone(connection);
        let chunk = Chunk { connection: connection_end, bytes: None, occupied: None };
        if self.chunks.send(chunk).await.is_err() {
            connection.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::{Window, windowed};
    use tidegate_core::signal::{LevelConfig, LevelGauge};

    /// A sender waits for an answer, and is not idle, also before the pipeline has processed its bytes.
    #[tokio::test]
    async fn unprocessed_bytes_are_unanswered() {
        let (chunks, _receiver) = windowed(Window::of_items(1_024));
        let gauge = LevelGauge::new(LevelConfig::default()).unwrap();
        let signal = SignalCell::new(gauge.signal());
        let entrance = Entrance::new(chunks, signal, Arc::new(StageMeter::new()));
        let peer = "127.0.0.1:7".parse().unwrap();
        let connection = entrance.connect(peer, Protocol::Frames);
        assert_eq!(connection.unanswered(), 0);
        entrance.push(&connection, Bytes::from_static(b"half of")).await.unwrap();
        assert_eq!(connection.unanswered(), 1);
        connection.answered();
        assert_eq!(connection.unanswered(), 0);
    }
}
