//! `tidegate manager`: tasks for workers that dial it.
//! May use: `cluster_node`, `node_process`.
//! Must not know: other commands.

mod flags;
mod run;

pub use flags::{EXAMPLES, ManagerFlags};
pub use run::run;
