use super::queue::ModelQueue;
use super::sync::{ArcSwap, AtomicBool, Ordering};
use std::sync::Arc;
use tidegate_core::admission::RetryBounds;
use tidegate_core::queue::PoolQueueConfig;
use tidegate_core::routing::{BusyThresholds, Demand};

/// The name that stands for requests whose model is unknown.
pub const ANY_MODEL: &str = "*";

/// Thresholds of, demand for and queue of one model, for as long as an upstream serves it.
#[derive(Debug)]
pub(super) struct Model {
    pub name: Arc<str>,
    pub demand: Demand,
    pub queue: Arc<ModelQueue>,
    thresholds: ArcSwap<BusyThresholds>,
    /// True if its thresholds were changed at run time.
    changed: AtomicBool,
}

// === impl Model ===

impl Model {
    pub fn new(
        name: &str,
        thresholds: BusyThresholds,
        queue: PoolQueueConfig,
        retry: RetryBounds,
    ) -> Self {
        Self {
            name: name.into(),
            demand: Demand::new(retry),
            queue: Arc::new(ModelQueue::new(queue)),
            thresholds: ArcSwap::from_pointee(thresholds),
            changed: AtomicBool::new(false),
        }
    }

    pub fn thresholds(&self) -> BusyThresholds {
        **self.thresholds.load()
    }

    pub fn was_changed(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
    }

    pub fn set_thresholds(&self, thresholds: BusyThresholds) {
        self.changed.store(true, Ordering::Relaxed);
        self.thresholds.store(Arc::new(thresholds));
    }
}
