use crate::storage::StoreError;
use crate::storage::postgres::{Settings, store_error};
use tokio_postgres::Transaction;
use tokio_postgres::error::SqlState;

/// Work of one transaction, possibly tried more than once.
pub(super) trait Work: Sync {
    type Done;

    fn run(
        &self,
        transaction: &Transaction<'_>,
        settings: &Settings,
        life: i64,
    ) -> impl Future<Output = Result<Self::Done, TransactionError>> + Send;
}

/// Failure of a transaction.
pub(super) enum TransactionError {
    Store(StoreError),
    /// Conflict with another transaction; a retry may succeed.
    Again(String),
}

// === impl TransactionError ===

impl TransactionError {
    pub(super) fn of(settings: &Settings, error: &tokio_postgres::Error) -> Self {
        let passes = [SqlState::T_R_DEADLOCK_DETECTED, SqlState::T_R_SERIALIZATION_FAILURE];
        let store = store_error(&settings.shown, error);
        match error.code().is_some_and(|code| passes.contains(code)) {
            true => Self::Again(store.to_string()),
            false => Self::Store(store),
        }
    }
}

impl From<StoreError> for TransactionError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}
