use tidegate_core::capacity::LedgerRefused;

/// A ledger could not be asked, or refused. Unless it refused, nothing is known of what it did; what it granted
/// returns when its time runs out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// It can't be reached now, and may be later.
    #[error("the ledger of slots can't be reached: {0}")]
    Unavailable(String),
    /// It is not one, or not one for us.
    #[error("the ledger of slots can't be used: {0}")]
    Unusable(String),
    /// It does not do that. Nothing changed.
    #[error("the ledger of slots refuses: {0}")]
    Refused(#[from] LedgerRefused),
}

// === impl LedgerError ===

impl LedgerError {
    /// Whether trying again later may help.
    #[must_use]
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Unavailable(_) => true,
            Self::Unusable(_) => false,
            Self::Refused(refused) => refused.is_temporary(),
        }
    }
}
