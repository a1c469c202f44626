//! The executor contract without HTTP: the same calls to an executor of this process.

use super::response::ExecutorResponse;
use crate::tasks::execution::{ExecuteBody, ReserveBody};
use crate::tasks::executor::{ExecuteError, Executor, ReserveError};
use tidegate::capacity::{ExecuteRefused, ReserveRefused};

/// Starts an execution, and returns its fence.
pub(super) fn execute(executor: &Executor, body: ExecuteBody) -> ExecutorResponse<u64> {
    match executor.execute(body) {
        Ok(started) => ExecutorResponse::Accepted(started.fence),
        Err(ExecuteError::Full { retry_after } | ExecuteError::Draining { retry_after }) => {
            ExecutorResponse::Full { retry_after }
        }
        Err(ExecuteError::Refused(ExecuteRefused::Gone | ExecuteRefused::Cancelled)) => {
            ExecutorResponse::Gone
        }
        Err(error) => ExecutorResponse::Rejected(error.to_string()),
    }
}

/// Reserves a slot, and returns the id of the reservation.
pub(super) fn reserve(executor: &Executor, body: &ReserveBody) -> ExecutorResponse<String> {
    match executor.reserve(body) {
        Ok(reserved) => ExecutorResponse::Accepted(reserved.reservation_id),
        Err(ReserveError::Full { retry_after } | ReserveError::Draining { retry_after }) => {
            ExecutorResponse::Full { retry_after }
        }
        Err(ReserveError::Refused(ReserveRefused::Cancelled)) => ExecutorResponse::Gone,
        Err(error) => ExecutorResponse::Rejected(error.to_string()),
    }
}
