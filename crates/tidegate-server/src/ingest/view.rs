use super::{Connections, IngestStats};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tidegate::pipeline::{PipelineView, Protocol};
use tidegate::store::AnyStore;
use tokio::sync::Semaphore;

/// Usage queries at once: each may read for long, and occupies a thread meanwhile.
const QUERIES_MAX: usize = 2;

/// A running ingestion, as the control plane sees it.
pub struct IngestView {
    frames_address: SocketAddr,
    lines_address: SocketAddr,
    pipeline: PipelineView,
    connections: Arc<Connections>,
    store: Arc<AnyStore>,
    tariffs: usize,
    failed: Arc<AtomicBool>,
    query_turns: Arc<Semaphore>,
}

// === impl IngestView ===

impl IngestView {
    pub(super) fn new(
        (frames_address, lines_address): (SocketAddr, SocketAddr),
        pipeline: PipelineView,
        connections: Arc<Connections>,
        store: Arc<AnyStore>,
        tariffs: usize,
    ) -> Self {
        Self {
            frames_address,
            lines_address,
            pipeline,
            connections,
            store,
            tariffs,
            failed: Arc::default(),
            query_turns: Arc::new(Semaphore::new(QUERIES_MAX)),
        }
    }

    /// Returns true if a part has ended unexpectedly.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    pub(super) fn failed(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.failed)
    }

    /// Returns true if it takes records in and stores them.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.has_failed() && self.pipeline.snapshot().store_ok
    }

    /// Turns of requests for sums.
    pub(super) fn query_turns(&self) -> Arc<Semaphore> {
        Arc::clone(&self.query_turns)
    }

    /// The address for frames.
    #[must_use]
    pub fn frames_address(&self) -> SocketAddr {
        self.frames_address
    }

    /// The address for lines.
    #[must_use]
    pub fn lines_address(&self) -> SocketAddr {
        self.lines_address
    }

    /// The stages.
    #[must_use]
    pub fn pipeline(&self) -> &PipelineView {
        &self.pipeline
    }

    /// The store of the records.
    #[must_use]
    pub fn store(&self) -> &Arc<AnyStore> {
        &self.store
    }

    /// All of it at this moment.
    #[must_use]
    pub fn stats(&self) -> IngestStats {
        IngestStats {
            connections_frames: self.connections.open(Protocol::Frames),
            connections_lines: self.connections.open(Protocol::Lines),
            connections_refused: self.connections.refused(),
            tariffs: self.tariffs,
            up: !self.has_failed(),
            counts: self.pipeline.counts(),
            pipeline: self.pipeline.snapshot().as_ref().clone(),
        }
    }
}
