//! Error responses: the one module that chooses the HTTP status of a failure.
//! Uses the types of responses and of refusals in `http`, and settings.
//! Must not know the errors of gateway, ingest and tasks: each names its own kind and reason.

mod fields;
mod format;
mod kind;
mod rejected;
mod response;

pub use format::{ResponseFormat, Unread};
pub use kind::ErrorKind;
pub use rejected::{RejectionPolicy, rejected, rejected_raw};
pub use response::ErrorResponse;
