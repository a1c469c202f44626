//! The contract without HTTP: the same calls, answered by the same executor.

use super::link::Offered;
use crate::worker::{ExecuteBody, ExecuteError, Executor, ReserveBody, ReserveError};
use tidegate::capacity::{ExecuteRefused, ReserveRefused};

/// Starts an execution; its fence.
pub(super) fn execute(executor: &Executor, body: ExecuteBody) -> Offered<u64> {
    match executor.execute(body) {
        Ok(started) => Offered::Taken(started.fence),
        Err(ExecuteError::Full { retry_after } | ExecuteError::Draining { retry_after }) => {
            Offered::Full { retry_after }
        }
        Err(ExecuteError::Refused(ExecuteRefused::Gone | ExecuteRefused::Cancelled)) => {
            Offered::Gone
        }
        Err(error) => Offered::Never(error.to_string()),
    }
}

/// Reserves a slot; the reservation's name.
pub(super) fn reserve(executor: &Executor, body: &ReserveBody) -> Offered<String> {
    match executor.reserve(body) {
        Ok(reserved) => Offered::Taken(reserved.reservation_id),
        Err(ReserveError::Full { retry_after } | ReserveError::Draining { retry_after }) => {
            Offered::Full { retry_after }
        }
        Err(ReserveError::Refused(ReserveRefused::Cancelled)) => Offered::Gone,
        Err(error) => Offered::Never(error.to_string()),
    }
}
