//! Exit codes of every command. Scripts rely on them: changing one is a breaking change.
//!
//! | code | meaning |
//! |---|---|
//! | 0 | The command did what it was asked for; every expectation of a drill or simulation held. |
//! | 1 | The command failed while it ran: no node answers, a task failed, an expectation was missed. |
//! | 2 | A flag, the configuration, a scenario or a file of tariffs is wrong. Nothing was started. |
//! | 130 | `drill` or `submit --wait` was stopped by Ctrl-C (SIGINT) or SIGTERM. |
//! | 1 … 125 | `submit --wait`: the exit code of a task that failed with one. |

/// A flag or the configuration is wrong; clap uses the same code for unknown flags.
pub const USAGE: u8 = 2;

/// A signal ended the command early: 128 + SIGINT, as shells report it.
pub const INTERRUPTED: u8 = 130;
