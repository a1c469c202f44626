use arc_swap::ArcSwap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidegate_core::routing::{BusyThresholds, Demand, LaneThresholds, Shares};

/// The name that stands for requests whose model is unknown.
pub const ANY_MODEL: &str = "*";

/// Thresholds of and demand for one model, for as long as an upstream serves it.
#[derive(Debug)]
pub(super) struct Model {
    pub name: Arc<str>,
    pub demand: Demand,
    thresholds: ArcSwap<LaneThresholds>,
    shares: Shares,
    /// True if its thresholds were changed at run time.
    changed: AtomicBool,
}

// === impl Model ===

impl Model {
    pub fn new(name: &str, thresholds: BusyThresholds, shares: Shares, advice: Duration) -> Self {
        Self {
            name: name.into(),
            demand: Demand::new(advice),
            thresholds: ArcSwap::from_pointee(LaneThresholds::new(thresholds, shares)),
            shares,
            changed: AtomicBool::new(false),
        }
    }

    pub fn thresholds(&self) -> LaneThresholds {
        **self.thresholds.load()
    }

    pub fn was_changed(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
    }

    pub fn set_thresholds(&self, thresholds: BusyThresholds) {
        self.changed.store(true, Ordering::Relaxed);
        self.thresholds.store(Arc::new(LaneThresholds::new(thresholds, self.shares)));
    }
}
