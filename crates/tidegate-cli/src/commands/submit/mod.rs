//! `tidegate submit`: submits a task and, with `--wait`, follows it to its end.
//! May use: `task_client`, `shutdown`.
//! Must not know: other commands.

mod flags;
mod run;

pub use flags::{EXAMPLES, SubmitFlags};
pub use run::run;
