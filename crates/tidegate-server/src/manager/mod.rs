//! Tasks: taken in, kept, placed on executors, followed to their end.

mod command;
mod desk;
mod error;
mod view;

pub use desk::{TaskDesk, Watch};
pub use error::DeskError;
pub use view::{Submit, TaskList, TaskNotice, TaskView};
