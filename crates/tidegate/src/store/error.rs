/// A store could not do what was asked; nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It may work later: the disk is full, the database is gone. What to do: wait and try again.
    #[error("the store can't be used now: {0}")]
    Unavailable(String),
    /// It won't work by waiting: the store is not ours, damaged, or of a newer version.
    #[error("the store can't be used: {0}")]
    Unusable(String),
    /// The store is well, and does not take this: it is too large, or makes no sense.
    #[error("the store does not take this: {0}")]
    Refused(String),
}

// === impl StoreError ===

impl StoreError {
    /// Whether trying again later may help.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }
}
