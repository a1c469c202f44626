use tidegate_core::capacity::LedgerRefused;

/// A ledger could not be asked, or refused. Unless it refused, nothing is known of what it did; what it granted
/// returns when its time runs out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// The ledger can't be reached now; a retry may succeed.
    #[error("the ledger of slots can't be reached: {0}")]
    Unavailable(String),
    /// The address names no ledger, or access is denied.
    #[error("the ledger of slots can't be used: {0}")]
    Unusable(String),
    /// The ledger refuses the request. Nothing changed.
    #[error("the ledger of slots refuses: {0}")]
    Refused(#[from] LedgerRefused),
}

// === impl LedgerError ===

impl LedgerError {
    /// True if a later retry may succeed.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Unavailable(_) => true,
            Self::Unusable(_) => false,
            Self::Refused(refused) => refused.is_temporary(),
        }
    }
}
