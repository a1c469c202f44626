//! Signals that end a command, and the drain that follows them.
//! May use: `failure`, `service_manager`.
//! Must not know: commands, flags.

mod report;
mod signals;
mod until_signal;

pub use report::flushed;
pub use signals::Signals;
pub use until_signal::UntilSignal;
