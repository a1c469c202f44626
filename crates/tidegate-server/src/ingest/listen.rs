use super::serve::{Line, serve};
use super::start::Stop;
use crate::wire;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;
use tidegate::pipeline::Protocol;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// How many connections there are and were.
#[derive(Debug, Default)]
pub struct Connections {
    open: [AtomicUsize; 2],
    refused: AtomicU64,
}

/// A place among the connections; free again when dropped.
struct Place(Arc<Connections>, Protocol);

/// Takes connections of one protocol until told to stop, then waits for those that are open.
pub async fn listen(listener: TcpListener, protocol: Protocol, line: Line) {
    let mut serving = JoinSet::new();
    let mut stopping = line.stopping.clone();
    loop {
        tokio::select! {
            _ = stopping.wait_for(|stop| *stop >= Stop::Drain) => break,
            // Those that have ended are let go of as they end.
            Some(_) = serving.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((tcp, peer)) => {
                    let Some(place) = Place::take(&line, protocol) else {
                        // Closed without a word: neither protocol has one for this, and a client tries again.
                        tracing::debug!(%peer, "turned away at ingest.connections_max");
                        continue;
                    };
                    if let Err(error) = wire::prepare(&tcp) {
                        tracing::debug!(%error, %peer, "a sender left before it was served");
                        continue;
                    }
                    let line = line.clone();
                    serving.spawn(async move {
                        serve(tcp, peer, protocol, line).await;
                        drop(place);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, protocol = protocol.name(), "could not accept a sender");
                    // Out of descriptors or memory: accepting again at once would spin.
                    sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
    drop(listener);
    while serving.join_next().await.is_some() {}
}

// === impl Connections ===

impl Connections {
    /// How many are open.
    #[must_use]
    pub fn open(&self, protocol: Protocol) -> usize {
        self.open[place(protocol)].load(Ordering::Relaxed)
    }

    /// How many were turned away, because too many were open.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

// === impl Place ===

impl Place {
    fn take(line: &Line, protocol: Protocol) -> Option<Self> {
        let connections = &line.connections;
        // Each protocol has its own: those who send lines can't shut out those who send frames.
        if connections.open(protocol) >= line.connections_max {
            connections.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        connections.open[place(protocol)].fetch_add(1, Ordering::Relaxed);
        Some(Self(Arc::clone(connections), protocol))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.open[place(self.1)].fetch_sub(1, Ordering::Relaxed);
    }
}

const fn place(protocol: Protocol) -> usize {
    match protocol {
        Protocol::Frames => 0,
        Protocol::Lines => 1,
    }
}
