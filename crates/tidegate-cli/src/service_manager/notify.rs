use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Variable with the socket of the service manager: a path, or with `@` the name of an abstract socket.
const SOCKET: &str = "NOTIFY_SOCKET";

/// The socket of a service manager, if one has started this process: the protocol of `sd_notify(3)`.
#[derive(Clone, Debug)]
pub struct ServiceManager {
    address: Option<SocketAddr>,
}

// === impl ServiceManager ===

impl ServiceManager {
    /// The service manager that the environment names.
    pub fn from_env() -> Self {
        let Some(socket) = std::env::var_os(SOCKET).filter(|socket| !socket.is_empty()) else {
            return Self { address: None };
        };
        let address = address(&socket);
        if let Err(error) = &address {
            tracing::warn!(%error, "{SOCKET} names no socket: the service manager is told nothing");
        }
        Self { address: address.ok() }
    }

    /// Tells that the process serves.
    pub fn ready(&self) {
        self.tell("READY=1\nSTATUS=serving");
    }

    /// Tells that the process drains and ends.
    pub fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=draining");
    }

    /// Tells that the process makes progress.
    pub(super) fn alive(&self) {
        self.tell("WATCHDOG=1");
    }

    fn tell(&self, message: &str) {
        let Some(address) = &self.address else { return };
        let sent = UnixDatagram::unbound().and_then(|socket| {
            // A service manager that does not read must not hold up a thread.
            socket.set_nonblocking(true)?;
            socket.send_to_addr(message.as_bytes(), address)
        });
        if let Err(error) = sent {
            tracing::warn!(%error, message, "the service manager can't be told");
        }
    }
}

fn address(socket: &OsStr) -> io::Result<SocketAddr> {
    match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        _ => SocketAddr::from_pathname(socket),
    }
}
