use crate::ledger::LedgerError;
use redis::{ErrorKind, RedisError, ServerErrorKind};

/// Maps an error of the server. The message shows no password.
pub(super) fn trouble(shown: &str, error: &RedisError) -> LedgerError {
    let what = format!("{shown}: {error}");
    if matches!(error.code(), Some("WRONGPASS" | "NOAUTH")) {
        return LedgerError::Unusable(what);
    }
    match error.kind() {
        ErrorKind::AuthenticationFailed
        | ErrorKind::InvalidClientConfig
        | ErrorKind::UnexpectedReturnType
        | ErrorKind::Server(ServerErrorKind::NoPerm) => LedgerError::Unusable(what),
        ErrorKind::RESP3NotSupported => {
            LedgerError::Unusable(format!("{what}: it takes Redis 6 or later, or a Valkey"))
        }
        ErrorKind::Server(
            ServerErrorKind::Moved | ServerErrorKind::Ask | ServerErrorKind::CrossSlot,
        ) => LedgerError::Unusable(format!(
            "{what}: it is a part of a cluster: give the address of a server that has all keys"
        )),
        // Of what a server may say no list is complete; most of it passes: it loads, it is full, it is a replica.
        _ => LedgerError::Unavailable(what),
    }
}

/// True if the connection can no longer be used.
pub(super) fn is_lost(error: &RedisError) -> bool {
    error.is_io_error() || error.is_unrecoverable_error() || error.kind() == ErrorKind::Parse
}
