use arc_swap::ArcSwap;
use std::sync::Arc;
use tidegate_core::signal::BackpressureSignal;

/// The current backpressure signal. Written ten times a second, read with every answer.
#[derive(Clone, Debug)]
pub(crate) struct SignalCell(Arc<ArcSwap<BackpressureSignal>>);

// === impl SignalCell ===

impl SignalCell {
    pub(crate) fn new(signal: BackpressureSignal) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(signal)))
    }

    pub(crate) fn get(&self) -> BackpressureSignal {
        **self.0.load()
    }

    pub(crate) fn set(&self, signal: BackpressureSignal) {
        if self.get() != signal {
            self.0.store(Arc::new(signal));
        }
    }
}
