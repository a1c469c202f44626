//! `tidegate tasks`: lists tasks.
//! May use: `task_client`, `terminal`.
//! Must not know: other commands.

mod flags;
mod run;

pub use flags::{EXAMPLES, TasksFlags};
pub use run::run;
