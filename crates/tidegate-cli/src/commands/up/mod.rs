//! `tidegate up`: the gateway with ingestion and tasks in one process.
//! May use: `node_process`.
//! Must not know: other commands.

mod flags;
mod run;

pub use flags::{EXAMPLES, UpFlags};
pub use run::run;
