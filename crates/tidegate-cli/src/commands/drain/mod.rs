//! `tidegate drain` and `tidegate undrain`: stop and resume the dispatch to a worker.
//! May use: `admin_client`, `task_client`, `terminal`.
//! Must not know: other commands.

mod flags;
mod run;

pub use flags::{DrainFlags, EXAMPLES, UndrainFlags};
pub use run::{run, run_off};
