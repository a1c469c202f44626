use super::{Connections, IngestStats};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tidegate::pipeline::{PipelineView, Protocol};
use tidegate::store::AnyStore;
use tokio::sync::Semaphore;

/// Sums that are added up at once: each may read for long, and holds a thread meanwhile.
const ASKERS_MAX: usize = 2;

/// What the control plane sees of the ingestion.
pub struct IngestView {
    frames_address: SocketAddr,
    lines_address: SocketAddr,
    pipeline: PipelineView,
    connections: Arc<Connections>,
    store: Arc<AnyStore>,
    tariffs: usize,
    failed: Arc<AtomicBool>,
    askers: Arc<Semaphore>,
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
            askers: Arc::new(Semaphore::new(ASKERS_MAX)),
        }
    }

    /// Whether a part of it has ended that should not have.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    pub(super) fn failed(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.failed)
    }

    /// Whether it takes records in and stores them.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.has_failed() && self.pipeline.snapshot().store_ok
    }

    /// Who asks for sums takes turns.
    pub(super) fn askers(&self) -> Arc<Semaphore> {
        Arc::clone(&self.askers)
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
