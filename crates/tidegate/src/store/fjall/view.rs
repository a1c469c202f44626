use super::engine::Engine;
use crate::store::StoreError;
use crate::store::tally::Tallies;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// What readers see, and the writer changes.
#[derive(Debug)]
pub(crate) struct View<E = Engine, T = Tallies> {
    inside: RwLock<Inside<E, T>>,
}

/// A consistent state: the sums of the engine and what is not in them yet are exchanged under one lock.
#[derive(Debug)]
pub(crate) struct Inside<E = Engine, T = Tallies> {
    /// None while the database is closed after a failure.
    pub(crate) engine: Option<Arc<E>>,
    pub(crate) tallies: T,
    /// Why the database is closed.
    pub(crate) closed_by: String,
}

// === impl View ===

impl<E, T: Default> Default for View<E, T> {
    fn default() -> Self {
        let inside = Inside { engine: None, tallies: T::default(), closed_by: String::new() };
        Self { inside: RwLock::new(inside) }
    }
}

impl<E, T> View<E, T> {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Inside<E, T>> {
        self.inside.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Inside<E, T>> {
        self.inside.write().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Inside ===

impl<E, T> Inside<E, T> {
    pub(crate) fn engine(&self) -> Result<Arc<E>, StoreError> {
        self.engine.clone().ok_or_else(|| StoreError::Unavailable(self.closed_by.clone()))
    }
}
