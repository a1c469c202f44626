//! `tidegate cluster`: makes a cluster, and tokens for nodes that join it.
//! May use: `cluster_node`, `terminal`.
//! Must not know: other commands.

mod flags;
mod run;

pub use flags::{ClusterCommand, EXAMPLES};
pub use run::run;
