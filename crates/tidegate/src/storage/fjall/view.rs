use super::Engine;
use crate::storage::StoreError;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The state that readers see and the writer replaces.
pub(crate) struct View<E: Engine> {
    state: RwLock<ViewState<E>>,
}

/// One consistent state: the database and its summary are replaced under one lock.
pub(crate) struct ViewState<E: Engine> {
    /// `None` while the database is closed after a failure.
    pub(crate) engine: Option<Arc<E>>,
    pub(crate) summary: E::Summary,
    /// The error that closed the database.
    pub(crate) closed_by: String,
}

// === impl View ===

impl<E: Engine> Default for View<E> {
    fn default() -> Self {
        let summary = E::Summary::default();
        Self { state: RwLock::new(ViewState { engine: None, summary, closed_by: String::new() }) }
    }
}

impl<E: Engine> View<E> {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, ViewState<E>> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, ViewState<E>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl ViewState ===

impl<E: Engine> ViewState<E> {
    pub(crate) fn engine(&self) -> Result<Arc<E>, StoreError> {
        self.engine.clone().ok_or_else(|| StoreError::Unavailable(self.closed_by.clone()))
    }
}
