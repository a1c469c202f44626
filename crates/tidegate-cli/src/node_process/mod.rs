//! A process that serves a node until a signal ends it: the common part of `up`, `manager` and `gate`.
//! May use: the server, `banner`, `cluster_node`, `config_loader`, `shutdown`, the mock of the testkit.
//! Must not know: commands and their flags.

mod node_banner;
mod node_role;
mod run;

pub use node_role::NodeRole;
pub use run::{run, run_in};
