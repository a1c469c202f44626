//! `tidegate launch`: one stage of the sandbox launcher, started by the process executor.
//! May use: the sandbox of the server.
//! Must not know: other commands.

mod flags;
mod run;

pub use flags::LaunchFlags;
pub use run::run;
