//! `tidegate sim`: scenarios in virtual time, and comparisons of settings.
//! May use: the simulator, `scenario_file`, `terminal`.
//! Must not know: other commands, any server.

mod check_flags;
mod command;
mod compare;
mod flags;
mod many_seeds;
mod one_seed;
mod recording;
mod run;
mod scenario;
mod shrunk;

pub use flags::{EXAMPLES, SimFlags};
pub use run::run;
