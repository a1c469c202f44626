use super::counters::{PipelineCounters, PipelineCounts};
use super::measure::snapshot::PipelineSnapshot;
use arc_swap::ArcSwap;
use std::sync::Arc;

/// Read access to the counts and measurements of a pipeline, without slowing it.
#[derive(Clone, Debug)]
pub struct PipelineView {
    pub(crate) counters: Arc<PipelineCounters>,
    pub(crate) snapshot: Arc<ArcSwap<PipelineSnapshot>>,
}

// === impl PipelineView ===

impl PipelineView {
    /// Totals since the start.
    #[must_use]
    pub fn counts(&self) -> PipelineCounts {
        self.counters.counts()
    }

    /// The last measurement, at most 100 ms old.
    #[must_use]
    pub fn snapshot(&self) -> Arc<PipelineSnapshot> {
        self.snapshot.load_full()
    }
}
