use crate::tasks::execution::ExecutionView;
use std::time::Duration;

/// Response of an executor to a request for a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecutorResponse<T> {
    /// Accepted.
    Accepted(T),
    /// All slots are in use.
    Full {
        /// Time until a slot may be free.
        retry_after: Duration,
    },
    /// No connection: the executor has not received the request.
    Unreachable,
    /// The reservation has expired, or the attempt was cancelled before it arrived.
    Gone,
    /// The executor will never accept the request as it is.
    Rejected(String),
    /// The request was sent, and its result is unknown.
    Unknown(String),
}

/// Response of an executor to a poll of an execution.
#[derive(Clone, Debug, PartialEq)]
pub enum PollResponse {
    /// State and new output.
    View(Box<ExecutionView>),
    /// The executor does not know the execution: it has restarted, or never received it.
    NotFound,
    /// No valid response.
    NoResponse(String),
}
