use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use tidegate::pipeline::Protocol;

/// Counts of open and refused connections.
#[derive(Debug, Default)]
pub struct Connections {
    open: [AtomicUsize; 2],
    refused: AtomicU64,
}

/// A slot of a connection; free again when dropped.
pub struct ConnectionSlot(Arc<Connections>, Protocol);

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

// === impl ConnectionSlot ===

impl ConnectionSlot {
    /// Takes a slot of this protocol, if fewer than `connections_max` are open.
    pub fn take(
        connections: &Arc<Connections>,
        connections_max: usize,
        protocol: Protocol,
    ) -> Option<Self> {
        // Each protocol has its own: those who send lines can't shut out those who send frames.
        if connections.open(protocol) >= connections_max {
            connections.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        connections.open[index(protocol)].fetch_add(1, Ordering::Relaxed);
        Some(Self(Arc::clone(connections), protocol))
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.open[index(self.1)].fetch_sub(1, Ordering::Relaxed);
    }
}

const fn index(protocol: Protocol) -> usize {
    match protocol {
        Protocol::Frames => 0,
        Protocol::Lines => 1,
    }
}
