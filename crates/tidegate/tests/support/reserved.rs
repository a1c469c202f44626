//! An address that nobody else gets while a test counts on it.

use std::net::{Ipv4Addr, SocketAddr};
use tokio::net::{TcpListener, TcpSocket};

/// An address of the loopback interface at which nobody listens. It is bound, so that nobody can: neither another
/// test nor a connection that goes out gets the port, and who connects is refused.
pub struct Reserved {
    pub address: SocketAddr,
    socket: TcpSocket,
}

impl Reserved {
    pub fn new() -> Self {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.bind((Ipv4Addr::LOCALHOST, 0).into()).expect("a free port");
        Self { address: socket.local_addr().expect("it is bound"), socket }
    }

    /// From now on somebody listens.
    pub fn listen(self) -> TcpListener {
        self.socket.listen(1_024).expect("the port is ours")
    }
}
