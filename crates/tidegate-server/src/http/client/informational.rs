use super::read_guard::ReadCheck;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Informational responses (1xx) that a server may send before the response itself. A server sends one or two; one
/// that sends them without end would keep the thread busy with heads that are parsed and dropped.
pub(super) const INFORMATIONAL_MAX: u32 = 16;

/// Follows the heads of responses to one request, as they come over HTTP/1.1, and counts the informational ones.
#[derive(Debug, Default)]
struct HeadScan {
    state: HeadState,
    informational: u32,
}

/// The position in a head.
#[derive(Clone, Copy, Debug, Default)]
enum HeadState {
    /// Before a status line; the number of its bytes that were read.
    #[default]
    Start,
    StatusLine(u8),
    /// In an informational head; true at the beginning of a line.
    Skip {
        empty: bool,
    },
}

/// The reason why nothing more is to be fed to a [`HeadScan`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scanned {
    /// The response itself has begun, or something that is no response.
    Final,
    /// The server sent more informational responses than it may.
    TooMany,
}

/// The heads that a connection still has to bring: shared by the connection and its socket.
#[derive(Debug, Default)]
pub struct HeadWatch {
    armed: AtomicBool,
    exceeded: AtomicBool,
}

/// The check of an HTTP/1.1 connection to a server. Fails when the server sends too many informational responses,
/// which the HTTP client itself reads for ever.
pub struct HeadCheck {
    watch: Arc<HeadWatch>,
    scan: HeadScan,
}

// === impl HeadScan ===

impl HeadScan {
    /// Reads on. `None` when the next bytes are still part of heads.
    fn feed(&mut self, bytes: &[u8]) -> Option<Scanned> {
        // The class of a status is the tenth byte of `HTTP/1.1 200 OK`, the status the tenth to the twelfth.
        const CLASS: u8 = 9;
        const LAST: u8 = 11;
        for &byte in bytes {
            self.state = match self.state {
                HeadState::Start if byte == b'\r' || byte == b'\n' => HeadState::Start,
                HeadState::Start => HeadState::StatusLine(1),
                HeadState::StatusLine(CLASS) if byte != b'1' => return Some(Scanned::Final),
                // 101 ends HTTP on the connection.
                HeadState::StatusLine(LAST) if byte == b'1' => return Some(Scanned::Final),
                HeadState::StatusLine(LAST) => {
                    self.informational += 1;
                    if self.informational > INFORMATIONAL_MAX {
                        return Some(Scanned::TooMany);
                    }
                    HeadState::Skip { empty: false }
                }
                HeadState::StatusLine(at) => HeadState::StatusLine(at + 1),
                HeadState::Skip { empty: true } if byte == b'\n' => HeadState::Start,
                HeadState::Skip { empty } => {
                    HeadState::Skip { empty: byte == b'\n' || (empty && byte == b'\r') }
                }
            };
        }
        None
    }
}

// === impl HeadWatch ===

impl HeadWatch {
    /// Expects the heads of the response to a request that is about to be sent.
    pub fn arm(&self) {
        self.armed.store(true, Ordering::Relaxed);
    }

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

// === impl HeadCheck ===

impl HeadCheck {
    pub fn new(watch: Arc<HeadWatch>) -> Self {
        Self { watch, scan: HeadScan::default() }
    }
}

impl ReadCheck for HeadCheck {
    fn check(&mut self, read: &[u8]) -> io::Result<()> {
        if !self.watch.armed.load(Ordering::Relaxed) {
            return Ok(());
        }
        match self.scan.feed(read) {
            None => Ok(()),
            Some(Scanned::Final) => {
                self.scan = HeadScan::default();
                self.watch.armed.store(false, Ordering::Relaxed);
                Ok(())
            }
            Some(Scanned::TooMany) => Err(self.watch.exceed()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The end of a scan, the same for the bytes at once and one by one.
    fn scanned(text: &str) -> Option<Scanned> {
        let whole = HeadScan::default().feed(text.as_bytes());
        let mut scan = HeadScan::default();
        let by_bytes = text.as_bytes().iter().find_map(|byte| scan.feed(&[*byte]));
        assert_eq!(whole, by_bytes, "{text:?}");
        whole
    }

    #[test]
    fn a_response_ends_the_scan_and_so_do_a_switch_and_what_is_none() {
        for text in ["HTTP/1.1 200 OK", "HTTP/1.1 101 S", "\r\nHTTP/1.0 404 N", "not http at all"] {
            assert_eq!(scanned(text), Some(Scanned::Final), "{text}");
        }
        assert_eq!(scanned("HTTP/1.1 "), None);
    }

    #[test]
    fn informational_heads_are_counted_by_their_ends() {
        let few = "HTTP/1.1 103 Early\r\nlink: a\r\n\r\n".repeat(16);
        assert_eq!(scanned(&few), None);
        assert_eq!(scanned(&format!("{few}HTTP/1.1 200 OK\r\n")), Some(Scanned::Final));
        assert_eq!(scanned(&format!("{few}HTTP/1.1 100 C\r\n")), Some(Scanned::TooMany));
        let bare = "HTTP/1.1 100 C\n\n".repeat(17);
        assert_eq!(scanned(&bare), Some(Scanned::TooMany), "lines may end without CR");
        let fields = format!("HTTP/1.1 100 C\r\nx: {}\r\n", "HTTP/1.1 100 ".repeat(40));
        assert_eq!(scanned(&fields), None, "a field is no head");
    }
}
