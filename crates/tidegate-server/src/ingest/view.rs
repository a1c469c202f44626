use super::{Connections, IngestStats};
use std::net::SocketAddr;
use std::sync::Arc;
use tidegate::pipeline::{PipelineView, Protocol};
use tidegate::store::AnyStore;

/// What the control plane sees of the ingestion.
pub struct IngestView {
    frames_address: SocketAddr,
    lines_address: SocketAddr,
    pipeline: PipelineView,
    connections: Arc<Connections>,
    store: Arc<AnyStore>,
    tariffs: usize,
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
        Self { frames_address, lines_address, pipeline, connections, store, tariffs }
    }

    /// Where frames arrive.
    #[must_use]
    pub fn frames_address(&self) -> SocketAddr {
        self.frames_address
    }

    /// Where lines arrive.
    #[must_use]
    pub fn lines_address(&self) -> SocketAddr {
        self.lines_address
    }

    /// The stages.
    #[must_use]
    pub fn pipeline(&self) -> &PipelineView {
        &self.pipeline
    }

    /// Where the records are.
    #[must_use]
    pub fn store(&self) -> &AnyStore {
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
            counts: self.pipeline.counts(),
            pipeline: self.pipeline.snapshot().as_ref().clone(),
        }
    }
}
