use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Informational responses (1xx) that a server may send before the response itself. A server sends one or two; one
/// that sends them without end would keep the thread busy with heads that are parsed and dropped.
pub(super) const INFORMATIONAL_MAX: u32 = 16;

/// The informational responses on a connection of HTTP/2: shared by the connection and its socket.
#[derive(Debug, Default)]
pub struct HeadWatch {
    exceeded: AtomicBool,
}

// === impl HeadWatch ===

impl HeadWatch {
    /// Records that the server sent too many informational responses, with the error of its connection.
    pub(super) fn exceed(&self) -> io::Error {
        self.exceeded.store(true, Ordering::Relaxed);
        io::Error::other("too many informational responses")
    }

    /// Returns true if the server sent too many informational responses.
    pub fn is_exceeded(&self) -> bool {
        self.exceeded.load(Ordering::Relaxed)
    }
}
