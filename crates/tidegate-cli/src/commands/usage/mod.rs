//! `tidegate usage`: shows usage and its cost.
//! May use: `admin_client`, the usage store, `terminal`.
//! Must not know: other commands.

mod flags;
mod run;
mod time;

pub use flags::{EXAMPLES, UsageFlags};
pub use run::run;
