//! Tasks: taken in, kept, placed on executors, followed to their end.

mod command;
mod desk;
#[cfg(test)]
pub(crate) mod double;
mod error;
mod view;

pub use desk::{TaskDesk, Watch};
pub use error::DeskError;
pub use view::{ExecutorList, ExecutorView, Submit, TaskList, TaskNotice, TaskView};
