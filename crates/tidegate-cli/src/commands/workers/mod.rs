//! `tidegate workers`: shows the workers of a manager.
//! May use: `admin_client`, `terminal`.
//! Must not know: other commands.

mod flags;
mod run;

pub use flags::{EXAMPLES, WorkersFlags};
pub use run::run;
