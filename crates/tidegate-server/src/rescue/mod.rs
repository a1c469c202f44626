//! The one place where a failure becomes an HTTP status. No error elsewhere knows any.

mod asker;
mod control;
mod problem;
mod proxying;
mod tasks;

pub use asker::{Asker, Unread};
pub use control::{not_found, read_only, record, threshold, usage};
pub use proxying::{FAILURE_REASONS, failed, reason_of, refused, unauthorized};
pub use tasks::task;
