/// A store could not do what was asked; nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// A later retry may succeed: the disk is full, the database is gone.
    #[error("the store can't be used now: {0}")]
    Unavailable(String),
    /// A retry can't succeed: the store belongs to another program, is damaged, or has a newer version.
    #[error("the store can't be used: {0}")]
    Unusable(String),
    /// The store is well, and does not take this: it is too large, or makes no sense.
    #[error("the store does not take this: {0}")]
    Refused(String),
}

// === impl StoreError ===

impl StoreError {
    /// True if a later retry may succeed.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}
