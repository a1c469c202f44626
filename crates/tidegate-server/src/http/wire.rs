//! Socket options of connections to clients and to upstreams.

use std::io;
use std::time::Duration;
use tokio::net::TcpStream;

/// Pings on an HTTP/2 connection, so that a peer that vanished is noticed.
pub const H2_PING_EVERY: Duration = Duration::from_secs(20);

/// Small writes go out at once, and a peer that vanished without a word is noticed: it would otherwise hold its
/// connection, and a tunnel its permit.
///
/// # Errors
///
/// When the socket is gone already.
pub fn prepare(tcp: &TcpStream) -> io::Result<()> {
    tcp.set_nodelay(true)?;
    let probes = socket2::TcpKeepalive::new()
        .with_time(Duration::from_secs(60))
        .with_interval(Duration::from_secs(15));
    socket2::SockRef::from(tcp).set_tcp_keepalive(&probes)
}
