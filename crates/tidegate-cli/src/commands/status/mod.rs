//! `tidegate status`: shows one task, or all executors.
//! May use: `task_client`, `terminal`.
//! Must not know: other commands.

mod flags;
mod run;

pub use flags::{EXAMPLES, StatusFlags};
pub use run::run;
