//! Views of tasks and executors: what the manager's handle and the HTTP API return.
//! Uses the types of a task and of an execution alone.
//! Must not know the manager's state.

mod executor_view;
mod task_progress;
mod task_view;
mod task_watch;

pub use executor_view::{ExecutorList, ExecutorView};
pub use task_progress::{ProgressSeriesView, ProgressView, TaskProgress};
pub use task_view::{Submit, TaskList, TaskView};
pub use task_watch::{TaskNotice, TaskWatch};
