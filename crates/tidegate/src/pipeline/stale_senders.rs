use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tidegate_core::usage::UsageRecord;

/// Senders of whom Store refused what Evaluate had taken: what is remembered of them is not what is stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct StaleSenders(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    any: AtomicBool,
    names: Mutex<Vec<Arc<str>>>,
    refused: Mutex<Vec<UsageRecord>>,
}

// === impl StaleSenders ===

impl StaleSenders {
    /// At most one for each batch that is under way.
    pub(crate) fn add(&self, sender: Arc<str>) {
        self.0.names.lock().unwrap_or_else(PoisonError::into_inner).push(sender);
        self.0.any.store(true, Ordering::Release);
    }

    /// Records that Store refused and Evaluate has counted for tiers: no more than are under way.
    pub(crate) fn add_refused(&self, mut records: Vec<UsageRecord>) {
        if !records.is_empty() {
            let mut refused = self.0.refused.lock().unwrap_or_else(PoisonError::into_inner);
            refused.append(&mut records);
        }
    }

    /// The refused records since the last time.
    pub(crate) fn take_refused(&self) -> Vec<UsageRecord> {
        std::mem::take(&mut *self.0.refused.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Those since the last time. Nearly always none, which costs a load.
    pub(crate) fn take(&self) -> Vec<Arc<str>> {
        if !self.0.any.swap(false, Ordering::AcqRel) {
            return Vec::new();
        }
        std::mem::take(&mut *self.0.names.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
