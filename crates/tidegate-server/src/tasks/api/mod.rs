//! The HTTP API of tasks: submit, list, watch and cancel them.
//! Uses the manager's handle and `http`.
//! Must not know the manager's state, executors or the gateway.

mod answer;
#[cfg(test)]
mod answer_tests;
mod error;
mod event_stream;
mod extension;
mod limits;
mod listing;
mod position;
mod route;
mod sse_encoder;
mod submission;
mod task_api;
mod tasks_off;

pub use error::TaskApiError;
pub use limits::SubmissionSettings;
// The parser of submissions, for its fuzz target alone.
#[doc(hidden)]
pub use submission::SubmissionHead;
pub use task_api::TaskApi;
pub use tasks_off::TasksOff;
