//! `tidegate cancel`: stops tasks.
//! May use: `task_client`.
//! Must not know: other commands.

mod flags;
mod run;

pub use flags::{CancelFlags, EXAMPLES};
pub use run::run;
