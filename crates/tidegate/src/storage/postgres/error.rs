use crate::storage::StoreError;
use std::error::Error as _;
use std::fmt::Write as _;

/// Classes of PostgreSQL's errors that pass: connection, deadlock, no disk or memory, locks, shutdown, IO.
const PASSING: [&str; 6] = ["08", "40", "53", "55", "57", "58"];

/// The database can be read only: a standby that is about to be promoted.
const READ_ONLY: &str = "25006";

/// Maps an error of the driver to an error of the store.
pub(crate) fn store_error(shown: &str, error: &tokio_postgres::Error) -> StoreError {
    let mut what = format!("{shown}: {error}");
    let mut source = error.source();
    while let Some(inner) = source {
        // Writing to a string can't fail.
        let _ = write!(what, ": {inner}");
        source = inner.source();
    }
    let code = error.code().map(|state| state.code());
    let passes =
        |code: &str| code == READ_ONLY || PASSING.iter().any(|class| code.starts_with(class));
    match code {
        Some(code) if !passes(code) => StoreError::Unusable(what),
        _ => StoreError::Unavailable(what),
    }
}
