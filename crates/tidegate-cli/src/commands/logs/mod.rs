//! `tidegate logs`: shows the output of a task.
//! May use: `task_client`.
//! Must not know: other commands.

mod flags;
mod run;

pub use flags::{EXAMPLES, LogsFlags};
pub use run::run;
