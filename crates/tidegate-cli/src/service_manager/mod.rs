//! The service manager that started this process, such as systemd: it is told when the process is ready, when it
//! stops, and that it makes progress.
//! May use: the standard library.
//! Must not know: commands, flags, the server.

mod notify;
mod watchdog;

pub use notify::ServiceManager;
pub use watchdog::Watchdog;
