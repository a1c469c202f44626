//! A process as a node of a cluster: how it joins, and the settings that follow.
//! May use: the server, `config_loader`.
//! Must not know: commands and their flags.

mod flags;
mod open;
mod presets;

pub use flags::{JoinFlags, UdpFlags};
pub use open::{default_name, exit_when_refused, node_failure, open, state_folder};
pub use presets::{gate_presets, manager_presets};
