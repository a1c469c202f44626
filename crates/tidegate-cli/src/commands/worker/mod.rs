//! `tidegate worker`: an executor of tasks.
//! May use: the server, `banner`, `config_loader`, `shutdown`.
//! Must not know: other commands.

mod access;
mod executor;
mod flags;
mod report;
mod run;
mod session;

pub use flags::{EXAMPLES, WorkerFlags};
pub use run::run;
