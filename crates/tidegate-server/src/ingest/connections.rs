use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tidegate::pipeline::{Connection, Protocol};
use tokio::sync::Notify;

/// Counts of open and refused connections.
#[derive(Debug, Default)]
pub struct Connections {
    open: [AtomicUsize; 2],
    refused: AtomicU64,
    /// Open connections, the oldest first.
    peers: [Mutex<VecDeque<Arc<Peer>>>; 2],
}

/// The other side of an open connection.
#[derive(Debug, Default)]
pub struct Peer {
    connection: OnceLock<Arc<Connection>>,
    evicted: Notify,
}

/// A slot of a connection; free again when dropped.
pub struct ConnectionSlot {
    connections: Arc<Connections>,
    protocol: Protocol,
    peer: Arc<Peer>,
}

// === impl Connections ===

impl Connections {
    /// Open connections.
    #[must_use]
    pub fn open(&self, protocol: Protocol) -> usize {
        self.open[index(protocol)].load(Ordering::Relaxed)
    }

    /// Connections refused because too many were open.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

// === impl Peer ===

impl Peer {
    /// Sets the connection that shows who the peer is.
    pub fn set_connection(&self, connection: &Arc<Connection>) {
        let _ = self.connection.set(Arc::clone(connection));
    }

    /// Waits until the connection has to make room for another one.
    pub async fn evicted(&self) {
        self.evicted.notified().await;
    }

    /// Returns true if the peer has not yet shown who it is, in a hello or a first line.
    pub fn is_unknown(&self) -> bool {
        self.connection.get().is_none_or(|connection| connection.identity().is_none())
    }
}

// === impl ConnectionSlot ===

impl ConnectionSlot {
    /// Takes a slot of this protocol, if fewer than `connections_max` are open. Otherwise the oldest connection
    /// whose peer has not shown who it is makes room: nobody can fill the port by saying nothing.
    pub fn take(
        connections: &Arc<Connections>,
        connections_max: usize,
        protocol: Protocol,
    ) -> Option<Self> {
        // Each protocol has its own: those who send lines can't shut out those who send frames.
        let mut peers = lock(&connections.peers[index(protocol)]);
        if connections.open(protocol) >= connections_max {
            let Some(oldest) = peers.iter().position(|peer| peer.is_unknown()) else {
                connections.refused.fetch_add(1, Ordering::Relaxed);
                return None;
            };
            if let Some(evicted) = peers.remove(oldest) {
                evicted.evicted.notify_one();
            }
        }
        let peer = Arc::new(Peer::default());
        peers.push_back(Arc::clone(&peer));
        connections.open[index(protocol)].fetch_add(1, Ordering::Relaxed);
        Some(Self { connections: Arc::clone(connections), protocol, peer: Arc::clone(&peer) })
    }

    /// The protocol of the connection.
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The other side of the connection.
    pub fn peer(&self) -> &Arc<Peer> {
        &self.peer
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let index = index(self.protocol);
        lock(&self.connections.peers[index]).retain(|peer| !Arc::ptr_eq(peer, &self.peer));
        self.connections.open[index].fetch_sub(1, Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const fn index(protocol: Protocol) -> usize {
    match protocol {
        Protocol::Frames => 0,
        Protocol::Lines => 1,
    }
}
