//! `tidegate config`: writes, checks and shows the configuration.
//! May use: `config_loader`, `settings_flags`.
//! Must not know: other commands.

mod flags;
mod run;

pub use flags::ConfigCommand;
pub use run::run;
