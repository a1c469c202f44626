//! `tidegate gate`: forwards requests and tasks to managers.
//! May use: `cluster_node`, `node_process`.
//! Must not know: other commands.

mod flags;
mod run;

pub use flags::{EXAMPLES, GateFlags};
pub use run::run;
