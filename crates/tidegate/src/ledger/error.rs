/// A ledger could not be asked. Nothing is known of what it did; what it granted returns when its time runs out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// It can't be reached now, and may be later.
    #[error("the ledger of slots can't be reached: {0}")]
    Unavailable(String),
    /// It is not one, or not one for us.
    #[error("the ledger of slots can't be used: {0}")]
    Unusable(String),
}
