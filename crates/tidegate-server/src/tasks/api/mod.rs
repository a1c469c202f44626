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

pub use error::TaskApiError;
pub use limits::SubmissionSettings;
pub use task_api::TaskApi;
