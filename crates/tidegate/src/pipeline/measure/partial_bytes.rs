use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that are held outside of the windows: frames and lines that have not come whole.
#[derive(Clone, Debug, Default)]
pub(crate) struct PartialBytes(Arc<AtomicU64>);

// === impl PartialBytes ===

impl PartialBytes {
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Something held `before` bytes and holds `after` now.
    pub(crate) fn moved(&self, before: usize, after: usize) {
        self.0.fetch_add(after as u64, Ordering::Relaxed);
        self.0.fetch_sub(before as u64, Ordering::Relaxed);
    }
}
