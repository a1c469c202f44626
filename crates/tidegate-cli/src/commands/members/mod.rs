//! `tidegate members`: shows the members of a cluster.
//! May use: `admin_client`, `task_client`, `terminal`.
//! Must not know: other commands.

mod flags;
mod run;

pub use flags::{EXAMPLES, MembersFlags};
pub use run::run;
