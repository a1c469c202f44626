//! The data port: accepts connections, hands each to an io thread, and closes idle and stalled ones.
//! Uses the proxy for requests, and the telemetry of threads.
//! Must not know upstreams, admission or the control plane.

mod accept;
mod client_io;
mod connection;
mod half_close;
mod io_thread;
mod reaper;
mod slow_log;

pub use accept::Acceptor;
pub use io_thread::IoThread;
