//! Where tasks are kept, so that none is lost and none ends twice.

mod record;
mod task_store;

pub use record::{Change, Kept, NewTask, Submission, TaskPage, TaskQuery, TaskRecord};
pub use task_store::{Durability, TaskStore};
