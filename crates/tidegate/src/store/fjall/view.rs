use super::engine::Engine;
use crate::store::StoreError;
use crate::store::tally::Tallies;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// What readers see, and the writer changes.
#[derive(Debug, Default)]
pub(super) struct View {
    inside: RwLock<Inside>,
}

/// A consistent state: the sums of the engine and what is not in them yet are exchanged under one lock.
#[derive(Debug, Default)]
pub(super) struct Inside {
    /// None while the database is closed after a failure.
    pub(super) engine: Option<Arc<Engine>>,
    pub(super) tallies: Tallies,
    /// Why the database is closed.
    pub(super) closed_by: String,
}

// === impl View ===

impl View {
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Inside> {
        self.inside.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, Inside> {
        self.inside.write().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Inside ===

impl Inside {
    pub(super) fn engine(&self) -> Result<Arc<Engine>, StoreError> {
        self.engine.clone().ok_or_else(|| StoreError::Unavailable(self.closed_by.clone()))
    }
}
