use super::counters::{PipelineCounters, PipelineCounts};
use super::snapshot::PipelineSnapshot;
use arc_swap::ArcSwap;
use std::sync::Arc;

/// What can be seen of a pipeline from outside, without slowing it.
#[derive(Clone, Debug)]
pub struct PipelineView {
    pub(crate) counters: Arc<PipelineCounters>,
    pub(crate) snapshot: Arc<ArcSwap<PipelineSnapshot>>,
}

// === impl PipelineView ===

impl PipelineView {
    /// What it has done since it started.
    #[must_use]
    pub fn counts(&self) -> PipelineCounts {
        self.counters.counts()
    }

    /// What it was like when it was last measured, at most 100 ms ago.
    #[must_use]
    pub fn snapshot(&self) -> Arc<PipelineSnapshot> {
        self.snapshot.load_full()
    }
}
